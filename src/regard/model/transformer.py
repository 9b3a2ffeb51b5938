"""The network: an encoder, a decoder, or both, on ragged batches, with heads.

Shapes: N tokens, M tokens of the memory, B sequences, D width, V vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.config import AttentionConfig, ModelConfig
from regard.errors import InputError
from regard.model.attention import ForwardContext
from regard.model.block import Block, build_norm
from regard.model.cache import Cache, LayerCache
from regard.model.embeddings import Embeddings
from regard.model.heads import TOKEN_HEADS, build_heads
from regard.model.hooks import has_hooks
from regard.model.kernels.layout import Layout, MaskFunction
from regard.model.positions import Rotary, build_bias, check_length
from regard.ragged import Ragged


@dataclass(frozen=True, eq=False)
class Output:
    """The result of a forward pass, for a batch or for one sequence of it."""

    hidden: Tensor  # (N, D) after the last layer; with `at`, at those positions only
    logits: Tensor | None = None  # (N, C) of a token head, (N, 2, V) of a bidirectional one, (B, C) of a sequence head
    pooled: Tensor | None = None  # (B, D)
    next_sentence: Tensor | None = None  # (B, 2) logits: the second segment follows the first, or does not
    memory: Tensor | None = None  # (M, D) hidden states of the encoder of an encoder-decoder


class Stack(nn.Module):
    """Embeddings, blocks and the final norm of an encoder or a decoder."""

    def __init__(
        self, config: ModelConfig, tokens: nn.Embedding, *, layers: int, causal: bool = False, cross: bool = False
    ) -> None:
        super().__init__()
        attention = config.attention
        positions = config.positions
        self.depth = layers
        self.distinct = config.distinct_layers or layers
        self.max_tokens = config.max_tokens
        self.gradient_checkpointing = False  # recompute activations in the backward pass to save memory
        self.embeddings = Embeddings(config, tokens)
        self.layers = nn.ModuleList(
            Block(config, causal=causal, local=_is_local(attention, i), cross=cross, first=i == 0)
            for i in range(self.distinct)
        )
        self.norm = build_norm(config, config.width) if config.norm_first else nn.Identity()
        self.bias = build_bias(positions, attention.heads, bidirectional=not causal)
        is_rotary = positions.kind == "rotary"
        self.rotary = Rotary(positions, config.head_width, theta=positions.theta) if is_rotary else None
        local_theta = positions.local_theta if is_rotary and attention.window is not None else None
        self.local_rotary = Rotary(positions, config.head_width, theta=local_theta) if local_theta else None

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
        """Hidden states after the last layer, or after the first `layers` (0 for the embeddings alone).

        With `at`, positions of the flat batch, the result has these rows only, and the last layer computes no others.
        """
        context = self.context(batch, mask, memory, cache)
        x_ND: Tensor = self.embeddings(batch)
        depth = self.depth if layers is None else layers
        for i in range(depth):
            block = self.layers[self.layer_index(i)]
            assert isinstance(block, Block)
            run: Callable[..., Tensor] = block
            if at is not None and i == self.depth - 1:
                run = partial(run_at, block, at)
            if self.gradient_checkpointing and torch.is_grad_enabled():
                run = partial(checkpoint, run, use_reentrant=False)
            x_ND = run(x_ND, context, None if cache is None else cache.layers[i])
        out_ND: Tensor = self.norm(x_ND) if depth == self.depth else x_ND
        return out_ND

    def layer_index(self, i: int) -> int:
        """Which of the distinct layers runs as the i-th."""
        return i * self.distinct // self.depth

    def context(
        self, batch: Ragged, mask: MaskFunction | None, memory: tuple[Tensor, Ragged] | None, cache: Cache | None
    ) -> ForwardContext:
        """What all layers of this forward pass share, computed once."""
        max_length = batch.max_length if cache is None else cache.max_length
        check_length(max_length, self.max_tokens)
        own = Layout.for_self_attention(batch.bounds, batch.max_length)
        return ForwardContext(
            layout=own if cache is None else cache.layout(own),
            rotary=None if self.rotary is None else self.rotary(batch.positions),
            local_rotary=None if self.local_rotary is None else self.local_rotary(batch.positions),
            bias_HR=None if self.bias is None else self.bias(max(max_length, 1)),
            mask=mask,
            memory_MD=None if memory is None else memory[0],
            memory_layout=None if memory is None else _cross_layout(own, memory[1], cache),
            cache=cache,
        )


def _is_local(attention: AttentionConfig, layer: int) -> bool:
    """Whether a layer attends within the window only; with `global_every`, every n-th layer attends everywhere."""
    if attention.window is None:
        return False
    return attention.global_every == 0 or layer % attention.global_every > 0


def _cross_layout(own: Layout, source: Ragged, cache: Cache | None) -> Layout:
    """Queries of the decoder's tokens, keys of the encoder's."""
    if cache is not None:
        return cache.cross_layout(own)
    return Layout(own.q_bounds, source.bounds, own.q_max_length, source.max_length)


def run_at(block: Block, at: Tensor, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None = None) -> Tensor:
    """`block(x_ND, context, cache)[at]`, without computing what the other positions do not need.

    Every token is still a key and a value of the last attention; its output projection, the residual sum and the
    feed-forward layer are computed at the positions `at` only.
    """
    attention = block.attention
    norm: nn.Module = block.attention_norm
    if block.cross is not None and block.cross_norm is not None:
        x_ND = _add(block, x_ND, attention(_sublayer_input(block, x_ND, norm), context, cache), norm)
        attention = block.cross
        norm = block.cross_norm
    residual_ND = x_ND.index_select(0, at)
    heads_ND = attention.mix_heads(_sublayer_input(block, x_ND, norm), context, cache)
    x_ND = _add(block, residual_ND, attention.out(heads_ND.index_select(0, at)), norm)
    norm = block.feedforward_norm
    return _add(block, x_ND, block.feedforward(_sublayer_input(block, x_ND, norm)), norm)


def _sublayer_input(block: Block, x_ND: Tensor, norm: nn.Module) -> Tensor:
    """norm(x) in a pre-norm block, else x."""
    out_ND: Tensor = norm(x_ND) if block.norm_first else x_ND
    return out_ND


def _add(block: Block, x_ND: Tensor, sublayer_ND: Tensor, norm: nn.Module) -> Tensor:
    """The residual sum, normalized in a post-norm block."""
    sum_ND: Tensor = x_ND + block.dropout(sublayer_ND)
    return sum_ND if block.norm_first else norm(sum_ND)


class Transformer(nn.Module):
    """A Transformer of any family: an encoder, a decoder, or both, as its config says."""

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
        head_config = config
        if config.target_vocabulary is not None:
            head_config = replace(config, vocabulary=config.output_vocabulary)
        self.heads = build_heads(head_config, heads or {}, tokens)

    @property
    def reader(self) -> Stack:
        """The stack that reads the input text: the encoder, or the decoder of a decoder-only network."""
        stack = self.encoder if self.encoder is not None else self.decoder
        assert stack is not None
        return stack

    @property
    def main(self) -> Stack:
        """The stack whose hidden states are the output."""
        stack = self.decoder if self.decoder is not None else self.encoder
        assert stack is not None
        return stack

    def read(self, batch: Ragged, *, layers: int | None = None) -> Tensor:
        """(N, D) hidden states of the input text after the last layer, or after the first `layers`."""
        hidden_ND: Tensor = self.reader(batch, layers=layers)
        return hidden_ND

    def forward(
        self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None, mask: MaskFunction | None = None
    ) -> Output:
        """Hidden states and the logits of the heads, of all tokens or only at the positions `at` of the flat batch.

        `at` holds indices from 0 and may be empty, if only heads of whole sequences are needed. The last layer then
        computes only what the heads read, unless a hook is registered.
        """
        if self.encoder is None or self.decoder is None:
            if target is not None:
                raise InputError(
                    f"a network of kind {self.config.kind} reads one batch, but a target was given too. Leave it out."
                )
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
        """The logits of all heads, from all hidden states or from those at the positions `needed` (see below)."""
        chosen_ND = hidden_ND
        firsts_BD = None
        if at is not None and needed is None:
            chosen_ND = hidden_ND.index_select(0, at)
        elif at is not None and "pooled" in self.heads:
            chosen_ND = hidden_ND[: len(at)].clone()  # FSDP does not allow a view as the result
            firsts_BD = hidden_ND[len(at) :]
        pooled_BD = self.heads["pooled"](hidden_ND, batch, firsts_BD) if "pooled" in self.heads else None
        logits: dict[str, Tensor] = {}
        for name, head in self.heads.items():
            if name != "pooled":
                logits[name] = head(chosen_ND if name in TOKEN_HEADS else pooled_BD)
        main = next((value for name, value in logits.items() if name != "next"), None)
        return Output(chosen_ND, main, pooled_BD, logits.get("next"), memory)

    def required_positions(self, batch: Ragged, at: Tensor | None) -> Tensor | None:
        """The positions whose hidden states the heads read: `at`, then the first token of each sequence if pooled.

        None if all are needed: without `at`, with mean or max pooling, or with a registered hook.
        """
        if at is None or (not torch.compiler.is_compiling() and has_hooks(self)):
            return None
        return self.positions_of_heads(batch, at)

    def positions_of_heads(self, batch: Ragged, at: Tensor) -> Tensor | None:
        """The same without a look at hooks, which takes time."""
        if "pooled" not in self.heads:
            return at
        if self.heads["pooled"].pooling == "first":
            return torch.cat((at, batch.first()))
        return None

    def new_cache(self, *, source: Ragged | None = None, sequences: int | None = None, capacity: int = 0) -> Cache:
        """An empty cache for a number of sequences, or for the targets of a `source`, which the encoder reads now."""
        if self.decoder is None:
            raise InputError(
                "this is an encoder-only network; it cannot generate text. Use a decoder or an encoder-decoder."
            )
        if self.encoder is None:
            if source is not None or sequences is None:
                raise InputError(
                    "a decoder-only network has no source. Give `sequences`, the number of sequences, instead."
                )
            device = next(self.parameters()).device
            return Cache.empty(layers=self.decoder.depth, sequences=sequences, device=device, capacity=capacity)
        if source is None:
            raise InputError("an encoder-decoder needs `source`, the batch that its encoder reads.")
        device = source.ids.device
        cache = Cache.empty(layers=self.decoder.depth, sequences=len(source), device=device, capacity=capacity)
        cache.memory = source
        cache.memory_MD = self.encoder(source)
        return cache

    def step(self, batch: Ragged, cache: Cache) -> Tensor:
        """(B, V) logits of the next token of each sequence, after reading the new tokens of `batch`."""
        if self.decoder is None or "language" not in self.heads:
            raise InputError('this network has no "language" head, so it cannot generate text.')
        placed = cache.advance(batch, limit=self.config.max_tokens)
        memory = None
        if cache.memory is not None and cache.memory_MD is not None:
            memory = (cache.memory_MD, cache.memory)
        hidden_ND: Tensor = self.decoder(placed, memory=memory, cache=cache)
        single = hidden_ND.shape[0] == len(batch)
        logits_BV: Tensor = self.heads["language"](hidden_ND if single else hidden_ND[batch.last()])
        return logits_BV
