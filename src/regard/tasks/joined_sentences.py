"""Several sentences of a document in one sequence, each of which is context of the others.

With context of its own on both sides, a sentence of 15 tokens needs a sequence of 80. Here each sentence is in one
sequence only, so that training with context reads about as many tokens as training without. Answers still come from
sequences of one sentence each: they must not depend on which other sentences are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, pairwise, starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.examples import Examples
from regard.data.batching.framing import Frame
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import TagRecord
from regard.tasks.tag_sequences import SentenceTokens, tagged_examples
from regard.text.flat_tokens import Ints, bounds_of

JOINED_TOKENS = 128  # of a sequence, at most; a longer sentence is in a sequence of its own


@dataclass(frozen=True, eq=False)
class JoinedExamples(Examples):
    """Sequences with several sentences each.

    words: the number of the first word of each sentence: words are numbered through, with a gap between sentences.
    """

    words: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def by_record(self, outputs: Sequence[Any], records: int) -> list[list[Any]]:
        windows: list[list[Any]] = [[] for _ in range(records)]
        for output in outputs:
            for record, part in output.by_sentence(self.words):
                windows[record].append(part)
        return windows


@dataclass(frozen=True, eq=False)
class JoinedSentences:
    """Sentences with their tokens, which are divided into sequences.

    columns: values for each token of the sentences. `word` and `upto` count the words of each sentence.
    follows: whether each sentence comes right after the one before it in the same document.
    """

    tokens: SentenceTokens
    columns: Mapping[str, Ints]
    follows: npt.NDArray[np.bool_]
    preprocessing: Preprocessing
    seed: int = 0

    @property
    def max_tokens(self) -> int:
        """The maximum length of a sequence in any epoch."""
        longest = int(self.tokens.own.lengths.max(initial=0)) + self._special_count
        length = max(JOINED_TOKENS, longest)
        return min(length, self.preprocessing.max_tokens or length)

    def epoch(self, number: int) -> Examples:
        """The sequences of an epoch: the first of each document has a random length, so that all divisions differ."""
        return self._divided(self._epoch_starts(number), self.columns)

    def epoch_lengths(self, number: int) -> Ints:
        """The lengths of the sequences of an epoch, without making them."""
        bounds, limit = self.tokens.own.bounds, self.preprocessing.max_tokens
        lengths = np.diff(np.append(bounds[self._epoch_starts(number)], bounds[-1])) + self._special_count
        if limit is not None and (lengths > limit).any():
            return self.epoch(number).lengths
        return lengths

    def scored_examples(self, words: Ints) -> JoinedExamples:
        """Sequences whose outputs can be divided by sentence. words: the number of words of each sentence."""
        starts = bounds_of(words + 1)[:-1]
        by_token = np.repeat(starts, self.tokens.own.lengths)
        counted = ((name, self.columns[name]) for name in ("word", "upto"))
        numbered = {name: np.where(of < 0, of, of + by_token) for name, of in counted}
        examples = self._divided(
            self._starts(np.full(len(self.follows), self._max_own_tokens)), {**self.columns, **numbered}
        )
        return JoinedExamples(**{one.name: getattr(examples, one.name) for one in fields(examples)}, words=starts)

    def _epoch_starts(self, number: int) -> Ints:
        generator = np.random.Generator(np.random.Philox(key=[self.seed, number]))
        return self._starts(generator.integers(1, self._max_own_tokens + 1, len(self.follows)))

    @property
    def _special_count(self) -> int:
        return Frame.of(self.preprocessing.tokenizer).special_count

    @property
    def _max_own_tokens(self) -> int:
        """Tokens of sentences in a sequence."""
        limit = self.preprocessing.max_tokens or JOINED_TOKENS
        return max(min(limit, JOINED_TOKENS) - self._special_count, 1)

    def _starts(self, first_limits: Ints) -> Ints:
        """The first sentence of each sequence. first_limits: the tokens of a sequence that begins a document there."""
        starts, free, limit = [], 0, self._max_own_tokens
        lengths = self.tokens.own.lengths.tolist()
        for row, (follows, length, first) in enumerate(
            zip(self.follows.tolist(), lengths, first_limits.tolist(), strict=True)
        ):
            if not follows or length > free:
                starts.append(row)
                free = limit if follows else first
            free -= length
        return np.array(starts, np.int64)

    def _divided(self, starts: Ints, columns: Mapping[str, Ints]) -> Examples:
        own, last = self.tokens.own, np.append(starts[1:], len(self.follows)) - 1
        joined = SentenceTokens(
            own._replace(bounds=np.append(own.bounds[starts], own.bounds[-1])),
            self.tokens.left.take(starts),
            self.tokens.right.take(last),
        )
        return tagged_examples(joined, columns, self.preprocessing, size=0)


def follows_previous(records: Sequence[TagRecord]) -> npt.NDArray[np.bool_]:
    """Whether each record is the next sentence of the document of the record before it."""
    return np.fromiter(chain((False,), starmap(_follows, pairwise(records))), np.bool_, len(records))


def _follows(before: TagRecord, record: TagRecord) -> bool:
    same = record.document is not None and record.document == before.document
    return same and record.left_context[-1:] == (before.text,)
