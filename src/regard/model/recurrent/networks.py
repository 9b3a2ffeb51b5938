"""Recurrent networks (GRU, LSTM) on ragged batches: language models, and encoder-decoders with or without attention.

Shapes: N tokens of the target, M of the source, B sequences, L layers, D width, E embedding, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regard.config import RecurrentConfig
from regard.errors import InputError, pluralize
from regard.model.cache import Cache
from regard.model.kernels.cpu_autograd import Dropout
from regard.model.recurrent.alignment import AlignmentAttention, EncoderStates, from_slots, to_slots, without_autocast
from regard.model.recurrent.unrolled import Unrolled
from regard.model.transformer import Output
from regard.ragged import Ragged

State = tuple[Tensor, ...]  # (L, B, D) each: hidden states, and those of the cells of an LSTM


@dataclass(frozen=True, eq=False)
class DecoderState:
    """The state of a decoder between two tokens."""

    state: State
    feed_BD: Tensor  # attention output of the last step, for input feeding; zeros before the first
    encoder: EncoderStates | None


@dataclass(eq=False)
class RecurrentCache(Cache):
    """The cache of a recurrent decoder: its state, which has the same size for any length."""

    decoder_state: DecoderState | None = None

    def repeat(self, count: int) -> None:
        """Repeat each sequence `count` times."""
        self.select(torch.arange(len(self), device=self.lengths.device).repeat_interleave(count))

    def select(self, rows: Tensor, *, changed: Tensor | None = None) -> None:
        """Keep these sequences in this order; one may occur several times (beam search)."""
        assert self.decoder_state is not None
        state = tuple(part[:, rows] for part in self.decoder_state.state)
        memory = None if self.decoder_state.encoder is None else self.decoder_state.encoder.select(rows)
        self.decoder_state = DecoderState(state, self.decoder_state.feed_BD[rows], memory)
        self.lengths = self.lengths[rows]
        self.max_length = int(self.lengths.max()) if len(self) else 0


class RecurrentLayers(nn.Module):
    """GRU (Cho et al. 2014) or LSTM (Hochreiter and Schmidhuber 1997) layers over a ragged batch, in one call."""

    def __init__(
        self, cell: str, size: int, width: int, *, layers: int, dropout: float, bidirectional: bool = False
    ) -> None:
        super().__init__()
        self.bidirectional, self.depth = bidirectional, layers
        kind = nn.GRU if cell == "gru" else nn.LSTM
        each = width // 2 if bidirectional else width
        between = dropout if layers > 1 else 0.0
        self.cells = kind(size, each, layers, dropout=between, bidirectional=bidirectional)
        self.state_tensors = 1 if cell == "gru" else 2

    def zero_state(self, rows: int, like: Tensor) -> State:
        """The state before the first token: zeros."""
        depth = self.depth * (2 if self.bidirectional else 1)
        zeros = like.new_zeros(depth, rows, self.cells.hidden_size, dtype=self.dtype)
        return (zeros,) * self.state_tensors

    def forward(self, x_NE: Tensor, batch: Ragged, steps: Unrolled, state: State | None = None) -> tuple[Tensor, State]:
        """(N, D) states at every token, and the last state of each sequence; an empty sequence keeps its state."""
        before = self.zero_state(len(batch), x_NE) if state is None else state
        if not steps.sizes:
            return x_NE.new_zeros(0, self.width), self.joined(before)
        packed = PackedSequence(x_NE[steps.order], torch.tensor(steps.sizes))
        out, ends = self.run(packed, tuple(part[:, steps.rows] for part in before))
        after = tuple(part.index_copy(1, steps.rows, end) for part, end in zip(before, ends, strict=True))
        return out[steps.back], self.joined(after)

    @property
    def width(self) -> int:
        return int(self.cells.hidden_size) * (2 if self.bidirectional else 1)

    @property
    def dtype(self) -> torch.dtype:
        return next(self.cells.parameters()).dtype

    def run(self, x: PackedSequence, state: State) -> tuple[Tensor, State]:
        """The torch kernel, always in the dtype of the weights."""
        initial = state[0].contiguous() if self.state_tensors == 1 else tuple(part.contiguous() for part in state)
        with without_autocast(x.data):
            out, after = self.cells(PackedSequence(x.data.to(self.dtype), x.batch_sizes), initial)
        return out.data, (after,) if self.state_tensors == 1 else after

    def joined(self, state: State) -> State:
        """The states of both directions concatenated."""
        if not self.bidirectional:
            return state
        return tuple(part.unflatten(0, (-1, 2)).transpose(1, 2).flatten(2) for part in state)


class Encoder(nn.Module):
    """Reads the source: a state at every token, and the last one, the only one used without attention."""

    def __init__(self, config: RecurrentConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens, self.dropout, self.depth = tokens, Dropout(config.dropout), config.layers
        self.layers = RecurrentLayers(
            config.cell,
            config.embedding_width,
            config.width,
            layers=config.layers,
            dropout=config.dropout,
            bidirectional=config.bidirectional,
        )

    def forward(self, source: Ragged) -> tuple[Tensor, State]:
        x_ME = self.dropout(self.tokens(source.ids))
        memory_MD, last = self.layers(x_ME, source, Unrolled.of(source))
        return memory_MD, last


class Decoder(nn.Module):
    """The decoder: runs all steps in one call, unless a step depends on the output of the one before."""

    def __init__(self, config: RecurrentConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens, self.dropout, self.depth = tokens, Dropout(config.dropout), config.layers
        self.input_feeding = config.input_feeding
        size = config.embedding_width + (config.width if self.input_feeding else 0)
        self.layers = RecurrentLayers(config.cell, size, config.width, layers=config.layers, dropout=config.dropout)
        self.align = None if config.score == "none" else AlignmentAttention(config)

    def forward(
        self,
        target: Ragged,
        past: DecoderState,
        *,
        weights: list[Tensor] | None = None,
    ) -> tuple[Tensor, DecoderState]:
        """(N, D) states at every token, and the decoder state after the last; `weights` receives (N, S) alignments."""
        steps = Unrolled.of(target)
        if self.input_feeding:
            return self.forward_step_by_step(target, past, steps, weights=weights)
        x_NE = self.dropout(self.tokens(target.ids))
        hidden_ND, state = self.layers(x_NE, target, steps, past.state)
        feed_BD = past.feed_BD
        if self.align is not None and past.encoder is not None:
            places_BT = to_slots(target.positions, target)
            found_BTD, looked_BTS = self.align(to_slots(hidden_ND, target), past.encoder, places_BT)
            hidden_ND = from_slots(found_BTD, target)
            if weights is not None:
                weights.append(from_slots(looked_BTS, target))
        return self.dropout(hidden_ND), replace(past, state=state, feed_BD=feed_BD)

    def forward_step_by_step(
        self,
        target: Ragged,
        past: DecoderState,
        steps: Unrolled,
        *,
        weights: list[Tensor] | None,
    ) -> tuple[Tensor, DecoderState]:
        """One step per token; sequences leave the batch when they end."""
        state = tuple(part[:, steps.rows] for part in past.state)
        feed_RD = past.feed_BD[steps.rows]
        memory = None if past.encoder is None else past.encoder.select(steps.rows)
        ids = target.ids[steps.order].split(list(steps.sizes))
        positions = target.positions[steps.order].split(list(steps.sizes))
        outputs: list[Tensor] = []
        weights_so_far: list[Tensor] = []
        ends: list[tuple[State, Tensor]] = []
        for ids_R, positions_R in zip(ids, positions, strict=True):
            active = len(ids_R)
            if active < len(feed_RD):  # the last sequences have ended
                ends.append((tuple(part[:, active:] for part in state), feed_RD[active:]))
                state, feed_RD = tuple(part[:, :active] for part in state), feed_RD[:active]
                memory = None if memory is None else memory.first(active)
            hidden_RD, state, looked_RS = self.step(ids_R, positions_R, state, feed_RD, memory)
            feed_RD = hidden_RD if self.input_feeding else feed_RD
            outputs.append(self.dropout(hidden_RD))
            weights_so_far += [] if looked_RS is None else [looked_RS]
        ends.append((state, feed_RD))
        if weights is not None and weights_so_far:
            weights.append(torch.cat(weights_so_far)[steps.back])
        hidden_ND = torch.cat(outputs)[steps.back] if outputs else past.feed_BD[:0]
        return hidden_ND, self.after(past, ends[::-1], steps.rows)

    def step(
        self, ids_R: Tensor, positions_R: Tensor, state: State, feed_RD: Tensor, memory: EncoderStates | None
    ) -> tuple[Tensor, State, Tensor | None]:
        """One token of each sequence."""
        x_RE = self.dropout(self.tokens(ids_R))
        if self.input_feeding:
            x_RE = torch.cat((x_RE, feed_RD.to(x_RE.dtype)), -1)
        hidden_RD, state = self.layers.run(PackedSequence(x_RE, torch.tensor([len(ids_R)])), state)
        if self.align is None or memory is None:
            return hidden_RD, state, None
        found_R1D, looked_R1S = self.align(hidden_RD.unsqueeze(1), memory, positions_R.unsqueeze(1))
        return found_R1D.squeeze(1), state, looked_R1S.squeeze(1)

    @staticmethod
    def after(past: DecoderState, ends: list[tuple[State, Tensor]], rows: Tensor) -> DecoderState:
        """The decoder state at the end of each sequence; `ends` are in the order of the rows."""
        state = tuple(
            part.index_copy(1, rows, torch.cat([end[number] for end, _ in ends], 1))
            for number, part in enumerate(past.state)
        )
        feed_RD = torch.cat([feed for _, feed in ends])
        return DecoderState(state, past.feed_BD.to(feed_RD.dtype).index_copy(0, rows, feed_RD), past.encoder)


class RecurrentNetwork(nn.Module):
    """A GRU or LSTM decoder or encoder-decoder, with the same interface as a Transformer (Sutskever et al. 2014)."""

    def __init__(self, config: RecurrentConfig, heads: Mapping[str, int] | None = None) -> None:
        super().__init__()
        wrong = [name for name in heads or {} if name != "language"]
        if wrong:
            raise InputError(f'a recurrent {config.kind} has no head "{wrong[0]}", only "language".')
        self.config = config
        tokens = nn.Embedding(config.vocabulary, config.embedding_width)
        self.encoder = Encoder(config, tokens) if config.kind == "encoder-decoder" else None
        if config.target_vocabulary is not None:
            tokens = nn.Embedding(config.target_vocabulary, config.embedding_width)
        self.decoder = Decoder(config, tokens)
        self.heads = nn.ModuleDict()
        if heads is None or "language" in heads:
            self.heads["language"] = nn.Linear(config.width, config.output_vocabulary)
            if config.tied:
                self.heads["language"].weight = tokens.weight

    @property
    def reader(self) -> Encoder | Decoder:
        """The part that reads the input text: the encoder, or the decoder of a decoder-only network."""
        return self.encoder if self.encoder is not None else self.decoder

    def forward(self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None) -> Output:
        """Hidden states and logits of the next token, at all positions of the target (or text) or only at `at`."""
        memory_MD = None
        if self.encoder is None:
            if target is not None:
                raise InputError("a network of kind decoder reads one batch, but a target was given too.")
            target, past = batch, self.initial_state(len(batch))
        else:
            if target is None:
                raise InputError("an encoder-decoder needs a second batch for its decoder: the target so far.")
            if len(target) != len(batch):
                raise InputError(
                    f"{pluralize(len(batch), 'source sequence')} but {pluralize(len(target), 'target')}; give one each."
                )
            memory_MD, past = self.encode(batch)
        head = next(iter(self.heads.values()), None)
        hidden_ND, _ = self.decoder(target, past)
        chosen_ND = hidden_ND if at is None else hidden_ND[at]
        return Output(chosen_ND, None if head is None else head(chosen_ND), memory=memory_MD)

    def initial_state(self, sequences: int) -> DecoderState:
        """The state of a decoder-only network before the first token."""
        state = self.decoder.layers.zero_state(sequences, self.decoder.tokens.weight)
        return DecoderState(state, state[0].new_zeros(sequences, self.config.width), None)

    def encode(self, source: Ragged) -> tuple[Tensor, DecoderState]:
        """The encoder's states, and the initial state of the decoder."""
        assert self.encoder is not None
        memory_MD, last = self.encoder(source)
        align = self.decoder.align
        memory = None if align is None else align.prepare(memory_MD, source)
        return memory_MD, DecoderState(last, last[0].new_zeros(len(source), self.config.width), memory)

    def alignment(self, batch: Ragged, target: Ragged) -> list[Tensor]:
        """(target tokens, source tokens) attention weights of each pair of sequences."""
        if self.decoder.align is None:
            raise InputError('this network has no attention (score "none"), so it has no alignments.')
        outputs: list[Tensor] = []
        self.decoder(target, self.encode(batch)[1], weights=outputs)
        sizes = batch.lengths.tolist()
        return [part[:, :size] for part, size in zip(target.split(outputs[0]), sizes, strict=True)]

    def new_cache(
        self, *, source: Ragged | None = None, sequences: int | None = None, capacity: int = 0
    ) -> RecurrentCache:
        """A cache with the initial decoder state, after the encoder has read the source."""
        if self.encoder is None:
            if source is not None or sequences is None:
                raise InputError(
                    "a decoder-only network has no source. Give `sequences`, the number of sequences, instead."
                )
            past = self.initial_state(sequences)
            return RecurrentCache(
                [], torch.zeros(sequences, dtype=torch.int64, device=past.feed_BD.device), capacity, decoder_state=past
            )
        if source is None:
            raise InputError("an encoder-decoder needs `source`, the batch that its encoder reads.")
        lengths = torch.zeros(len(source), dtype=torch.int64, device=source.ids.device)
        return RecurrentCache([], lengths, capacity, decoder_state=self.encode(source)[1])

    def step(self, batch: Ragged, cache: Cache) -> Tensor:
        """(B, V) logits of the next token of each sequence, after reading the new tokens of `batch`."""
        if "language" not in self.heads:
            raise InputError('this network has no "language" head, so it cannot generate text.')
        assert isinstance(cache, RecurrentCache)
        assert cache.decoder_state is not None
        hidden_ND, cache.decoder_state = self.decoder(cache.advance(batch), cache.decoder_state)
        logits_BV: Tensor = self.heads["language"](hidden_ND[batch.last()])
        return logits_BV
