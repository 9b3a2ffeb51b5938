"""The network: an encoder, a decoder, or both, on ragged batches, with heads.

Shapes: N tokens, M tokens of the memory, B sequences, D width, V vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.config import ModelConfig
from regard.errors import InputError
from regard.model.attention import ForwardContext
from regard.model.block import Block, build_norm
from regard.model.cache import Cache
from regard.model.embeddings import Embeddings
from regard.model.heads import TOKEN_HEADS, build_heads
from regard.model.hooks import has_hooks
from regard.model.kernels.layout import Layout, MaskFunction
from regard.model.positions import Rotary, build_bias, check_length
from regard.ragged import Ragged


@dataclass(frozen=True, eq=False)
class Output:
    """What a network says of a batch, or of one sequence of it."""

    hidden: Tensor  # (N, D) after the last layer; of the chosen places alone where some were chosen
    logits: Tensor | None = None  # (N, C) of a token head, (N, 2, V) of words on both sides, (B, C) of a sequence head
    pooled: Tensor | None = None  # (B, D)
    next_sentence: Tensor | None = None  # (B, 2) whether the second segment follows the first
    memory: Tensor | None = None  # (M, D) of the encoder, where a decoder stands on it


class Stack(nn.Module):
    """Embeddings, blocks and the last norm of an encoder or a decoder."""

    def __init__(
        self, config: ModelConfig, tokens: nn.Embedding, *, layers: int, causal: bool = False, cross: bool = False
    ) -> None:
        super().__init__()
        attention, places = config.attention, config.positions
        self.depth, self.distinct, self.max_tokens = layers, config.distinct_layers or layers, config.max_tokens
        self.gradient_checkpointing = False  # inner states again in the backward pass, for less memory
        self.embeddings = Embeddings(config, tokens)
        self.layers = nn.ModuleList(
            Block(
                config,
                causal=causal,
                local=attention.window is not None and (attention.global_every == 0 or i % attention.global_every > 0),
                cross=cross,
                first=i == 0,
            )
            for i in range(self.distinct)
        )
        self.norm = build_norm(config, config.width) if config.norm_first else nn.Identity()
        self.bias = build_bias(places, attention.heads, bidirectional=not causal)
        rotary = places.kind == "rotary"
        self.rotary = Rotary(places, config.head_width, theta=places.theta) if rotary else None
        local = places.local_theta if rotary and attention.window is not None else None
        self.local_rotary = Rotary(places, config.head_width, theta=local) if local else None

    def forward(
        self,
        batch: Ragged,
        *,
        mask: MaskFunction | None = None,
        memory: tuple[Tensor, Ragged] | None = None,
        cache: Cache | None = None,
        layers: int | None = None,
        at: Tensor | None = None,
    ) -> Tensor:
        """States after the last layer, or after so many `layers` (0 for the embeddings alone).

        Where only those `at` some places are wanted, the last layer works out no others.
        """
        flow = self.context(batch, mask, memory, cache)
        x_ND: Tensor = self.embeddings(batch)
        depth = self.depth if layers is None else layers
        for i in range(depth):
            layer, store = self.layers[self.layer_index(i)], None if cache is None else cache.layers[i]
            again, places = self.gradient_checkpointing and torch.is_grad_enabled(), at if i == self.depth - 1 else None
            run = partial(checkpoint, layer, use_reentrant=False) if again else layer
            x_ND = run(x_ND, flow, store, places)
        out_ND: Tensor = self.norm(x_ND) if depth == self.depth else x_ND
        return out_ND

    def layer_index(self, i: int) -> int:
        """Which of the distinct layers runs in the i-th place."""
        return i * self.distinct // self.depth

    def context(
        self, batch: Ragged, mask: MaskFunction | None, memory: tuple[Tensor, Ragged] | None, cache: Cache | None
    ) -> ForwardContext:
        """What every layer of this pass shares, computed once."""
        longest = batch.max_length if cache is None else cache.max_length
        check_length(longest, self.max_tokens)
        own = Layout.for_self_attention(batch.bounds, batch.max_length)
        across = None
        if memory is not None:
            bounds, longest_memory = memory[1].bounds, memory[1].max_length
            across = (
                Layout(batch.bounds, bounds, batch.max_length, longest_memory)
                if cache is None
                else cache.cross_layout(own)
            )
        return ForwardContext(
            layout=own if cache is None else cache.layout(own),
            rotary=None if self.rotary is None else self.rotary(batch.positions),
            local_rotary=None if self.local_rotary is None else self.local_rotary(batch.positions),
            bias_HR=None if self.bias is None else self.bias(max(longest, 1)),
            mask=mask,
            memory_MD=None if memory is None else memory[0],
            memory_layout=across,
            cache=cache,
        )


class Transformer(nn.Module):
    """Any family, by its settings."""

    def __init__(self, config: ModelConfig, heads: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.config = config
        tokens = nn.Embedding(config.vocabulary, config.embedding_width or config.width)
        both = config.kind == "encoder-decoder"
        self.encoder = Stack(config, tokens, layers=config.layers) if config.kind != "decoder" else None
        if config.target_vocabulary is not None:
            tokens = nn.Embedding(config.target_vocabulary, config.embedding_width or config.width)
        depth = config.decoder_layers if both else config.layers
        self.decoder = (
            Stack(config, tokens, layers=depth, causal=True, cross=both) if config.kind != "encoder" else None
        )
        said = config if config.target_vocabulary is None else replace(config, vocabulary=config.output_vocabulary)
        self.heads = build_heads(said, heads or {}, tokens)

    @property
    def reader(self) -> Stack:
        """The stack that reads the text: the encoder, or the decoder where there is none."""
        stack = self.encoder if self.encoder is not None else self.decoder
        assert stack is not None
        return stack

    @property
    def main(self) -> Stack:
        """The stack whose states are the output."""
        stack = self.decoder if self.decoder is not None else self.encoder
        assert stack is not None
        return stack

    def forward(
        self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None, mask: MaskFunction | None = None
    ) -> Output:
        """States and what the heads make of them, or only those `at` some places of the flat batch.

        Places are counted from 0 and may be none, where a head reads whole sequences. The last layer then works out
        what the heads read, and nothing else, unless somebody looks inside.
        """
        if self.encoder is None or self.decoder is None:
            if target is not None:
                raise InputError(f"a network of kind {self.config.kind} reads one batch, but a target was given too.")
            needed = self.required_positions(batch, at)
            return self.apply_heads(self.main(batch, mask=mask, at=needed), batch, at=at, needed=needed)
        if target is None:
            raise InputError("an encoder-decoder needs a second batch for its decoder: the target so far.")
        if len(target) != len(batch):
            raise InputError(f"{len(batch)} source sequences but {len(target)} targets; give one target each.")
        memory_MD = self.encoder(batch, mask=mask)
        needed = self.required_positions(target, at)
        hidden_ND = self.decoder(target, memory=(memory_MD, batch), at=needed)
        return self.apply_heads(hidden_ND, target, at=at, needed=needed, memory=memory_MD)

    def apply_heads(
        self,
        hidden_ND: Tensor,
        batch: Ragged,
        *,
        at: Tensor | None,
        needed: Tensor | None,
        memory: Tensor | None = None,
    ) -> Output:
        """What the heads make of the states: of all, or of those `needed` to know what is `at` some places."""
        chosen_ND, firsts_BD = hidden_ND, None
        if at is not None and needed is None:
            chosen_ND = hidden_ND.index_select(0, at)
        elif at is not None and "pooled" in self.heads:
            chosen_ND, firsts_BD = hidden_ND[: len(at)].clone(), hidden_ND[len(at) :]  # shards want no view of a result
        pooled_BD = self.heads["pooled"](hidden_ND, batch, firsts_BD) if "pooled" in self.heads else None
        said: dict[str, Tensor] = {}
        for name, head in self.heads.items():
            if name != "pooled":
                said[name] = head(chosen_ND if name in TOKEN_HEADS else pooled_BD)
        main = [logits for name, logits in said.items() if name != "next"]
        return Output(chosen_ND, main[0] if main else None, pooled_BD, said.get("next"), memory)

    def required_positions(self, batch: Ragged, at: Tensor | None) -> Tensor | None:
        """The places whose states the heads read: those `at` which they are asked for, then the first of each sequence
        where it stands for all of it. None where any may be read, or looked at."""
        if at is None or (not torch.compiler.is_compiling() and has_hooks(self)):
            return None
        if "pooled" not in self.heads:
            return at
        return torch.cat((at, batch.first())) if self.heads["pooled"].pooling == "first" else None

    def set_training_progress(self, done: float) -> None:
        """How much of a training is done: nothing here depends on it."""

    def new_cache(self, *, source: Ragged | None = None, sequences: int | None = None, capacity: int = 0) -> Cache:
        """An empty cache for so many sequences, or for the targets of a source, which the encoder reads now."""
        if self.decoder is None:
            raise InputError("this network only encodes; it has no decoder that could step from word to word.")
        if self.encoder is None:
            if source is not None or sequences is None:
                raise InputError("a decoder that stands alone begins with `sequences`, how many, and has no source.")
            device = next(self.parameters()).device
            return Cache.empty(layers=self.decoder.depth, sequences=sequences, device=device, capacity=capacity)
        if source is None:
            raise InputError("an encoder-decoder begins with its `source`.")
        device = source.ids.device
        cache = Cache.empty(layers=self.decoder.depth, sequences=len(source), device=device, capacity=capacity)
        cache.memory, cache.memory_MD = source, self.encoder(source)
        return cache

    def step(self, batch: Ragged, cache: Cache) -> Tensor:
        """(B, V) scores of the word after the last of each sequence, having read only what is new."""
        hidden_ND = self.hidden_states(batch, cache)
        single = hidden_ND.shape[0] == len(batch)
        return self.token_logits(hidden_ND if single else hidden_ND[batch.last()])

    def hidden_states(self, batch: Ragged, cache: Cache) -> Tensor:
        """(N, D) states of the tokens that are new, having read only them."""
        if self.decoder is None or "language" not in self.heads:
            raise InputError('this network has no "language" head to step with.')
        placed = cache.advance(batch, limit=self.config.max_tokens)
        memory = None
        if cache.memory is not None and cache.memory_MD is not None:
            memory = (cache.memory_MD, cache.memory)
        hidden_ND: Tensor = self.decoder(placed, memory=memory, cache=cache)
        return hidden_ND

    def token_logits(self, hidden_ND: Tensor) -> Tensor:
        """(N, V) scores of the word after each of these states."""
        logits_NV: Tensor = self.heads["language"](hidden_ND)
        return logits_NV
