"""The module that becomes an ONNX file, with the names of its inputs and outputs as transformers.js expects them.

An encoder with its heads has the inputs `input_ids`, `attention_mask` and, with segments, `token_type_ids`; its outputs
are those of the heads (`logits`, or `start_logits` and `end_logits`, `pooler_output`) and `last_hidden_state`.

Shapes: B sequences, T tokens, N = B T, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from regard.export.padded import PaddedBatch, run_stack
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged

BATCH, LENGTH = "batch_size", "sequence_length"  # names of the dynamic dimensions


@dataclass(frozen=True, eq=False)
class Graph:
    """A module to trace, example inputs of shape (B, T), and the names of its outputs."""

    module: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]


def encoder_graph(network: Transformer) -> Graph:
    """The graph of an encoder whose attention takes padded sequences (`padded_copy`)."""
    ids = torch.randint(network.config.vocabulary, (2, 7), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if network.config.segments > 1:
        inputs["token_type_ids"] = torch.zeros_like(ids)
    return Graph(EncoderModule(network), inputs, (*head_names(network), "last_hidden_state"))


class EncoderModule(nn.Module):
    """An encoder with its heads."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        assert self.network.encoder is not None
        batch = PaddedBatch(input_ids, attention_mask, token_type_ids)
        hidden_ND = run_stack(self.network.encoder, batch)
        hidden_BTD = hidden_ND.unflatten(0, (batch.size, batch.length))
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
