"""An n-gram language model with the interface of a network: it has counted words, and looks back a few of them.

The n-grams are a tree. Level 1 has every word that was seen; a node of level k is a sequence of k words, stored as its
parent (the node of its first k - 1 words) and its last word. All nodes of a level are sorted by parent and word: the
words that followed a sequence are neighbors. Tensors of folders hold floating-point numbers, which are exact for whole
numbers up to 2 ** 24.

Shapes: N tokens, B sequences, C words of context (order - 1), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import NgramConfig
from regard.errors import InputError
from regard.model.cache import Cache
from regard.model.transformer import Output
from regard.ragged import Ragged

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NO_WORD = -1  # context before the first word of a text
SMALLEST = 1e-12  # probability of what was never seen, without a discount


@dataclass(frozen=True, eq=False)
class Level:
    """Sorted sequences of k words: the node of their first k - 1 words, their last word, and how often they occur."""

    parents: Ints
    words: Ints
    counts: Floats

    def children(self, node: int) -> slice:
        """The sequences that continue a node of the level before."""
        first, last = np.searchsorted(self.parents, [node, node + 1])
        return slice(int(first), int(last))

    def find(self, node: int, word: int) -> int | None:
        """The sequence of a node of the level before and a word; None if it was never seen."""
        inside = self.children(node)
        position = inside.start + int(np.searchsorted(self.words[inside], word))
        return position if position < inside.stop and self.words[position] == word else None


class NgramCounts(nn.Module):
    """The counts of all n-grams, all levels one after the other."""

    depth = 0  # layers

    def __init__(self, config: NgramConfig) -> None:
        super().__init__()
        self.config = config
        self.parents = nn.Parameter(torch.zeros(config.entries))
        self.words = nn.Parameter(torch.zeros(config.entries))
        self.counts = nn.Parameter(torch.zeros(config.entries))
        self.sizes = nn.Parameter(torch.zeros(config.order))
        self._levels: tuple[Tensor, list[Level]] | None = None

    @property
    def levels(self) -> list[Level]:
        """The levels as arrays, prepared when they are first used."""
        if self._levels is None or self._levels[0] is not self.counts:
            self._levels = (self.counts, self._read_levels())
        return self._levels[1]

    def _read_levels(self) -> list[Level]:
        if self.counts.dtype != torch.float32:
            raise InputError("the counts of an n-gram model are exact in fp32 only. Load it with dtype fp32.")
        values = [part.detach().cpu().numpy() for part in (self.parents, self.words, self.counts)]
        ends = np.cumsum(self.sizes.detach().cpu().numpy()).astype(np.int64)
        parts = [np.split(value, ends[:-1]) for value in values]
        return [
            Level(parents.astype(np.int64), words.astype(np.int64), counts.astype(np.float64))
            for parents, words, counts in zip(*parts, strict=True)
        ]

    def probabilities(self, context: tuple[int, ...]) -> Floats:
        """(V,) of the next word: counts after the whole context, mixed with those after shorter ones.

        Absolute discounting: each count is reduced by the discount, and what this frees goes to the shorter context,
        down to equal probabilities (Ney et al. 1994).
        """
        vocabulary, discount = self.config.vocabulary, self.config.discount
        result: Floats = np.full(vocabulary, 1.0 / vocabulary)
        for length in range(min(len(context), self.config.order - 1) + 1):
            node = self._node(context[len(context) - length :])
            if node is None:
                break
            level = self.levels[length]
            inside = level.children(node)
            counts = level.counts[inside]
            if not len(counts):
                break
            result *= discount * len(counts) / counts.sum()
            result[level.words[inside]] += np.maximum(counts - discount, 0) / counts.sum()
        return result

    def _node(self, words: tuple[int, ...]) -> int | None:
        """The node of a sequence of words; 0, the parent of level 1, for none."""
        node = 0
        for level, word in zip(self.levels, words, strict=False):
            child = level.find(node, word)
            if child is None:
                return None
            node = child
        return node


@dataclass(eq=False)
class NgramCache(Cache):
    """The last words of each sequence."""

    context_BC: Tensor | None = None

    def repeat(self, count: int) -> None:
        """Repeat each sequence `count` times."""
        self.select(torch.arange(len(self), device=self.lengths.device).repeat_interleave(count))

    def select(self, rows: Tensor, *, changed: Tensor | None = None) -> None:
        """Keep these sequences in this order; one may occur several times (beam search)."""
        assert self.context_BC is not None
        self.context_BC = self.context_BC[rows]
        self.lengths = self.lengths[rows]
        self.max_length = int(self.lengths.max()) if len(self) else 0


class NgramNetwork(nn.Module):
    """An n-gram language model. The hidden state of a token are the last words up to it, as numbers."""

    def __init__(self, config: NgramConfig, heads: Mapping[str, int] | None = None) -> None:
        super().__init__()
        wrong = [name for name in heads or {} if name != "language"]
        if wrong:
            raise InputError(f'an n-gram language model has no head "{wrong[0]}", only "language".')
        self.config = config
        self.decoder = NgramCounts(config)
        self.heads = nn.ModuleDict({"language": nn.Identity()} if heads is None or "language" in heads else {})

    @property
    def encoder(self) -> None:
        """None: it is a decoder."""

    @property
    def reader(self) -> NgramCounts:
        return self.decoder

    def forward(self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None) -> Output:
        """The context of every token, or of those at the positions `at`, and the log-probabilities of the next."""
        if target is not None:
            raise InputError("a network of kind decoder reads one batch, but a target was given too.")
        empty_BC = torch.full((len(batch), self.config.width), NO_WORD, device=batch.ids.device)
        contexts_NC, _ = self._contexts(batch, empty_BC)
        chosen_NC = contexts_NC if at is None else contexts_NC[at]
        return Output(chosen_NC, self.token_logits(chosen_NC) if "language" in self.heads else None)

    def _contexts(self, batch: Ragged, before_BC: Tensor) -> tuple[Tensor, Tensor]:
        """(N, C) the last words up to each token, and (B, C) those at the end of each sequence."""
        width = self.config.width
        parts, ends = [], []
        for ids, before in zip(batch.split(batch.ids), before_BC, strict=True):
            line = torch.cat((before, ids))
            parts.append(line.unfold(0, width, 1)[1:])
            ends.append(line[-width:])
        return torch.cat(parts).float(), torch.stack(ends)

    def token_logits(self, hidden_NC: Tensor) -> Tensor:
        """(N, V) log-probabilities of the word after each context."""
        contexts, rows = np.unique(hidden_NC.detach().cpu().numpy().astype(np.int64), axis=0, return_inverse=True)
        known = [tuple(word for word in context if word != NO_WORD) for context in contexts.tolist()]
        words = self.config.order - 1
        table = np.stack([self.decoder.probabilities(one[len(one) - min(words, len(one)) :]) for one in known])
        logs = np.log(np.maximum(table, SMALLEST)).astype(np.float32)
        return torch.from_numpy(logs[rows.reshape(-1)]).to(hidden_NC.device)

    def new_cache(self, *, source: Ragged | None = None, sequences: int | None = None, capacity: int = 0) -> NgramCache:
        """An empty cache for a number of sequences."""
        if source is not None or sequences is None:
            raise InputError("a decoder-only network has no source. Give `sequences`, the number of sequences.")
        device = self.decoder.counts.device
        context_BC = torch.full((sequences, self.config.width), NO_WORD, device=device)
        lengths = torch.zeros(sequences, dtype=torch.int64, device=device)
        return NgramCache([], lengths, capacity, context_BC=context_BC)

    def step(self, batch: Ragged, cache: Cache) -> Tensor:
        """(B, V) log-probabilities of the next token of each sequence, after reading the new tokens of `batch`."""
        assert isinstance(cache, NgramCache)
        assert cache.context_BC is not None
        contexts_NC, cache.context_BC = self._contexts(cache.advance(batch), cache.context_BC)
        return self.token_logits(contexts_NC[batch.last()])


def count_ngrams(ids: Ints, order: int, vocabulary: int) -> dict[str, Tensor]:
    """The tensors of `NgramCounts` for a text: all sequences of 1 to `order` words, in order."""
    parents, words, counts, sizes = [], [], [], []
    nodes: Ints = np.zeros(len(ids), np.int64)  # the node of the words before each position
    for length in range(1, min(order, len(ids)) + 1):
        last = ids[length - 1 :]
        keys, nodes, occurrences = np.unique(
            nodes[: len(last)] * vocabulary + last, return_inverse=True, return_counts=True
        )
        parents.append(keys // vocabulary)
        words.append(keys % vocabulary)
        counts.append(occurrences)
        sizes.append(len(keys))
    sizes += [0] * (order - len(sizes))
    values = {"parents": parents, "words": words, "counts": counts}
    tensors = {name: torch.from_numpy(np.concatenate(part).astype(np.float32)) for name, part in values.items()}
    return {**tensors, "sizes": torch.tensor(sizes, dtype=torch.float32)}
