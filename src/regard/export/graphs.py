"""The modules that become ONNX files, with the names of their inputs and outputs as transformers.js expects them.

| file | network | inputs | outputs |
|---|---|---|---|
| `model` | encoder | input_ids, attention_mask, token_type_ids | logits …, last_hidden_state |
| `model` | decoder | input_ids, attention_mask, past_key_values.* | logits, present.* |
| `encoder_model` | encoder-decoder | input_ids, attention_mask | last_hidden_state |
| `decoder_model` | its first step | input_ids, encoder_hidden_states, encoder_attention_mask | logits, present.* |
| `decoder_with_past_model` | next steps | input_ids, encoder_attention_mask, past_key_values.* | logits, present.* |
| `decoder_model_merged` | both, see merged_decoder.py | the inputs of both, use_cache_branch | logits, present.* |

Shapes: B sequences, T tokens, P tokens of the cache, S tokens of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.export.padded import KeysValues, PaddedBatch, run_stack
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged

B, T, P, S, TOTAL = "batch_size", "sequence_length", "past_sequence_length", "encoder_sequence_length", "total_length"
Shape = dict[int, str]


@dataclass(frozen=True, eq=False)
class Graph:
    """A module to trace: its file, example inputs with the names of their dynamic dimensions, and its outputs."""

    file: str  # without .onnx
    module: nn.Module
    inputs: dict[str, Tensor]
    shapes: dict[str, Shape]
    outputs: tuple[str, ...]


def graphs(network: Transformer) -> list[Graph]:
    """All graphs of a network whose attention takes padded sequences (`padded_copy`)."""
    if network.decoder is None:
        return [_encoder_graph("model", network, heads=True)]
    if network.encoder is None:
        return [_decoder_graph(network)]
    first = _first_step_graph(network)
    return [_encoder_graph("encoder_model", network, heads=False), first, _next_step_graph(network)]


def _ids(vocabulary: int, size: int = 2, length: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocabulary, (size, length), generator=generator)


class EncoderModule(nn.Module):
    """An encoder with its heads."""

    def __init__(self, network: Transformer, *, heads: bool) -> None:
        super().__init__()
        self.network = network
        self.with_heads = heads

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        assert self.network.encoder is not None
        batch = PaddedBatch(input_ids, attention_mask, token_type_ids)
        hidden_ND = run_stack(self.network.encoder, batch)[0]
        hidden_BTD = hidden_ND.unflatten(0, (batch.size, batch.length))
        if not self.with_heads:
            return (hidden_BTD,)
        output = self.network.apply_heads(hidden_ND, cast("Ragged", batch), at=None, needed=None)
        return (*head_outputs(self.network, output, batch), hidden_BTD)


def head_names(network: Transformer) -> tuple[str, ...]:
    """The outputs of the heads, by their names in transformers."""
    names: list[str] = []
    if any(name not in ("pooled", "next", "span") for name in network.heads):
        names.append("logits")
    if "span" in network.heads:
        names += ["start_logits", "end_logits"]
    if "next" in network.heads:
        names.append("seq_relationship_logits")
    if "pooled" in network.heads:
        names.append("pooler_output")
    return tuple(names)


def head_outputs(network: Transformer, output: Output, batch: PaddedBatch) -> list[Tensor]:
    """The outputs of the heads in the order of `head_names`, with one row per sequence."""
    values: list[Tensor] = []
    logits = output.logits
    if logits is not None and "sequence" not in network.heads:
        logits = logits.unflatten(0, (batch.size, batch.length))
    if logits is not None:
        values += [logits[..., 0], logits[..., 1]] if "span" in network.heads else [logits]
    if output.next_sentence is not None:
        values.append(output.next_sentence)
    if output.pooled is not None:
        values.append(output.pooled)
    return values


def _encoder_graph(file: str, network: Transformer, *, heads: bool) -> Graph:
    ids = _ids(network.config.vocabulary)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if network.config.segments > 1:
        inputs["token_type_ids"] = torch.zeros_like(ids)
    names = (*head_names(network), "last_hidden_state") if heads else ("last_hidden_state",)
    shapes = {name: {0: B, 1: T} for name in inputs}
    return Graph(file, EncoderModule(network, heads=heads), inputs, shapes, names)


class DecoderModule(nn.Module):
    """A decoder, with or without an encoder: the logits of new tokens and the keys and values of all."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Of a decoder: ids, mask, then keys and values of each layer."""
        ids_BT, mask_BS, *rest = tensors
        assert self.network.decoder is not None
        batch = PaddedBatch(ids_BT, mask_BS)
        hidden_ND, present, _ = run_stack(self.network.decoder, batch, past=_pairs(rest))
        return (self.logits(hidden_ND, batch), *_flattened(present))

    def logits(self, hidden_ND: Tensor, batch: PaddedBatch) -> Tensor:
        logits_BTV: Tensor = self.network.token_logits(hidden_ND).unflatten(0, (batch.size, batch.length))
        return logits_BTV


class FirstStep(DecoderModule):
    """The first step of a decoder with an encoder: ids, hidden states of the encoder and their mask."""

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        ids_BT, memory_BSD, memory_mask_BS = tensors
        assert self.network.decoder is not None
        batch = PaddedBatch(ids_BT, torch.ones_like(ids_BT))
        hidden_ND, own, crossed = run_stack(self.network.decoder, batch, memory=(memory_BSD, memory_mask_BS))
        both = [pair for layer in zip(own, crossed, strict=True) for pair in layer]
        return (self.logits(hidden_ND, batch), *_flattened(both))


class NextStep(DecoderModule):
    """A further step: ids, mask of the source, then own and encoder keys and values of each layer."""

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        ids_BT, memory_mask_BS, *rest = tensors
        assert self.network.decoder is not None
        pairs = _pairs(rest)
        own, crossed = pairs[0::2], pairs[1::2]
        keys = own[0][0].shape[2] + ids_BT.shape[1]
        batch = PaddedBatch(ids_BT, ids_BT.new_ones((ids_BT.shape[0], keys)))
        no_states = memory_mask_BS.unsqueeze(2).to(own[0][0].dtype)  # never read: all keys and values are there
        hidden_ND, present, _ = run_stack(
            self.network.decoder, batch, memory=(no_states, memory_mask_BS), past=own, past_memory=crossed
        )
        return (self.logits(hidden_ND, batch), *_flattened(present))


def _pairs(tensors: Sequence[Tensor]) -> list[KeysValues]:
    return list(zip(tensors[0::2], tensors[1::2], strict=True))


def _flattened(pairs: Sequence[KeysValues]) -> list[Tensor]:
    return [tensor for pair in pairs for tensor in pair]


def _cache_inputs(network: Transformer, kinds: dict[str, str]) -> tuple[dict[str, Tensor], dict[str, Shape]]:
    """Empty-looking caches of every layer by name; `kinds` are the parts of the name and their dynamic length."""
    assert network.decoder is not None
    config = network.config
    inputs: dict[str, Tensor] = {}
    shapes: dict[str, Shape] = {}
    for layer in range(network.decoder.depth):
        for kind, length in kinds.items():
            for part in ("key", "value"):
                name = f"past_key_values.{layer}.{kind}{part}"
                inputs[name] = torch.zeros(2, config.kv_heads, 7 if length == S else 3, config.head_width)
                shapes[name] = {0: B, 2: length}
    return inputs, shapes


def _decoder_graph(network: Transformer) -> Graph:
    ids = _ids(network.config.vocabulary, length=5)
    past, past_shapes = _cache_inputs(network, {"": P})
    inputs = {"input_ids": ids, "attention_mask": torch.ones(2, 8, dtype=torch.int64), **past}
    shapes = {"input_ids": {0: B, 1: T}, "attention_mask": {0: B, 1: TOTAL}, **past_shapes}
    outputs = ("logits", *(name.replace("past_key_values", "present") for name in past))
    return Graph("model", DecoderModule(network), inputs, shapes, outputs)


def _first_step_graph(network: Transformer) -> Graph:
    inputs = {
        "input_ids": _ids(network.config.output_vocabulary, length=3),
        "encoder_hidden_states": torch.zeros(2, 7, network.config.width),
        "encoder_attention_mask": torch.ones(2, 7, dtype=torch.int64),
    }
    shapes = {name: {0: B, 1: T if name == "input_ids" else S} for name in inputs}
    cache, _ = _cache_inputs(network, {"decoder.": P, "encoder.": S})
    outputs = ("logits", *(name.replace("past_key_values", "present") for name in cache))
    return Graph("decoder_model", FirstStep(network), inputs, shapes, outputs)


def _next_step_graph(network: Transformer) -> Graph:
    past, past_shapes = _cache_inputs(network, {"decoder.": P, "encoder.": S})
    inputs = {
        "input_ids": _ids(network.config.output_vocabulary, length=5),
        "encoder_attention_mask": torch.ones(2, 7, dtype=torch.int64),
        **past,
    }
    shapes: dict[str, Any] = {"input_ids": {0: B, 1: T}, "encoder_attention_mask": {0: B, 1: S}, **past_shapes}
    outputs = tuple(name.replace("past_key_values", "present") for name in past if ".decoder." in name)
    return Graph("decoder_with_past_model", NextStep(network), inputs, shapes, ("logits", *outputs))
