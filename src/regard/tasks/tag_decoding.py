"""The most likely sequence of tags that is possible in IOB2: Viterbi decoding with hard constraints.

In IOB2 an entity starts with `B-X`, and `I-X` is only possible after `B-X` or `I-X`. A network that classifies every
word alone may predict other sequences, such as `O I-PER`. In plain terms, decoding works as follows:

1. If the most likely tags of all words are a possible sequence, they are the answer: no other sequence is more likely.
2. Otherwise, for each word and tag, compute the log-probability of the best possible sequence that ends there, from
   those of the word before. Tags `O` and `B-X` follow the best of all tags, `I-X` the better of `B-X` and `I-X`.
3. Start with the best tag of the last word and go back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.text.flat_tokens import Ints, ranges

SMALLEST = np.finfo(np.float32).tiny  # a probability of 0 is unlikely, but not impossible

Bools = npt.NDArray[np.bool_]
Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TagConstraints:
    """Which of the tags continue an entity (`I-X`), and the number of the `B-X` that may come before each of them."""

    continues: Bools
    opening: Ints  # for I-X the number of B-X, or of I-X itself if there is no such tag; for other tags their own
    kind: Ints  # tags of the same entity type have the same number; 0 for O

    @classmethod
    def of(cls, names: Sequence[str]) -> TagConstraints:
        """The constraints of IOB2 for these tags: `O`, `B-X` and `I-X`."""
        number = {name: index for index, name in enumerate(names)}
        kinds = {kind: index for index, kind in enumerate(dict.fromkeys(["", *(name[2:] for name in names)]))}
        return cls(
            continues=np.array([name.startswith("I-") for name in names]),
            opening=np.array([number.get(f"B-{name[2:]}", index) for index, name in enumerate(names)]),
            kind=np.array([kinds[name[2:]] for name in names]),
        )

    def decode(self, probabilities: Probabilities, starts: Bools) -> Ints:
        """The number of the tag of each word: the possible sequences with the highest product of probabilities.

        probabilities: (words, tags), of one or more texts. starts: for each word whether it cannot continue an entity,
        because it is the first of its text or does not directly follow the word before.
        """
        tags: Ints = probabilities.argmax(1)
        impossible = self._impossible(tags, starts)
        if not impossible.any():
            return tags
        firsts = np.flatnonzero(starts)
        bounds = np.append(firsts, len(tags))
        wrong = np.unique(np.searchsorted(firsts, np.flatnonzero(impossible), side="right") - 1)
        lengths = np.diff(bounds)[wrong]
        inside = np.arange(lengths.max()) < lengths[:, None]
        words = ranges(firsts[wrong], lengths)
        scores = np.zeros((*inside.shape, probabilities.shape[1]))
        scores[inside] = np.log(np.maximum(probabilities[words], SMALLEST), dtype=np.float64)
        tags[words] = self._viterbi(scores, lengths)[inside]
        return tags

    def _impossible(self, tags: Ints, starts: Bools) -> Bools:
        """Words that continue an entity that is not there."""
        other_kind = np.ones(len(tags), np.bool_)
        other_kind[1:] = self.kind[tags[1:]] != self.kind[tags[:-1]]
        return self.continues[tags] & (starts | other_kind)

    def _viterbi(self, scores: npt.NDArray[np.float64], lengths: Ints) -> Ints:
        """The best tags of several texts. scores: (texts, words, tags), 0 after the last word of a text."""
        texts, words, tag_count = scores.shape
        own = np.arange(tag_count)
        previous = np.empty(scores.shape, np.int64)  # the best tag of the word before, for each word and tag
        total = np.where(self.continues, -np.inf, scores[:, 0])
        for word in range(1, words):
            any_tag = total.argmax(1)[:, None]
            same_kind = np.where(total[:, self.opening] >= total, self.opening, own)
            before = np.where(self.continues, same_kind, any_tag)
            inside = (word < lengths)[:, None]
            previous[:, word] = np.where(inside, before, own)
            total = np.where(inside, np.take_along_axis(total, before, 1) + scores[:, word], total)
        tags = np.empty((texts, words), np.int64)
        tags[:, -1] = total.argmax(1)
        for word in range(words - 1, 0, -1):
            tags[:, word - 1] = previous[np.arange(texts), word, tags[:, word]]
        return tags
