"""Word vectors: nearest neighbors, analogies, and the accuracy on a set of analogies.

`negative_sampling` and `glove` train them; `files` reads and writes them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from regard.errors import InputError

Floats = npt.NDArray[np.float32]
Question = tuple[str, str, str, str]  # a is to b as c is to d

AT_ONCE = 1 << 24  # scores in memory at once: 64 MB


@dataclass(frozen=True)
class Neighbor:
    """A word and its score: the cosine similarity, or the score of an analogy."""

    word: str
    score: float


@dataclass(frozen=True)
class AnalogyScore:
    """Results of analogy questions: correct ones, those with four known words, and all."""

    right: int
    known: int
    total: int

    @property
    def accuracy(self) -> float:
        """Fraction of correct answers to known questions; 0 if there are none."""
        return self.right / self.known if self.known else 0.0


@dataclass(frozen=True)
class WordVectors:
    """A table with a row for each word, the words in the order of the rows."""

    words: tuple[str, ...]
    table: Floats

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or len(self.table) != len(self.words) or not self.words:
            raise InputError(f"{len(self.words)} words do not match a table of shape {self.table.shape}.")
        if len(self.rows) != len(self.words):
            raise InputError("a word occurs twice. Give every word once.")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return self.find(word) is not None

    def __getitem__(self, word: str) -> Floats:
        """The vector of a word."""
        vector: Floats = self.table[self.row(word)]
        return vector

    @cached_property
    def rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def unit(self) -> Floats:
        """The table with rows normalized to length 1; rows of zeros stay zero."""
        lengths = np.linalg.norm(self.table, axis=1, keepdims=True)
        unit: Floats = (self.table / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
        return unit

    def find(self, word: str) -> int | None:
        """The row of a word as written, else in lower case; None if it has no vector."""
        return self.rows.get(word, self.rows.get(word.lower()))

    def row(self, word: str) -> int:
        """The row of a word; an error if it has no vector."""
        result = self.find(word)
        if result is None:
            near = difflib.get_close_matches(word.lower(), self.words[:100_000], n=1, cutoff=0.6)
            fix = f' Did you mean "{near[0]}"?' if near else ""
            raise InputError(f'"{word}" is not one of the {len(self):,} words with a vector.{fix}')
        return result

    def nearest(self, word: str | npt.ArrayLike, top: int = 10) -> list[Neighbor]:
        """The words with the highest cosine similarity to a word (itself excluded) or to a vector."""
        if isinstance(word, str):
            row = self.row(word)
            return self._best(self.unit @ self.unit[row], [row], top)
        vector = np.asarray(word, np.float32)
        if vector.shape != self.table.shape[1:]:
            raise InputError(f"a vector of shape {vector.shape} was given, expected ({self.table.shape[1]},).")
        return self._best(self.unit @ (vector / max(float(np.linalg.norm(vector)), 1e-12)), [], top)

    def similarity(self, one: str, other: str) -> float:
        """The cosine similarity of two words."""
        return float(self.unit[self.row(one)] @ self.unit[self.row(other)])

    def analogy(self, a: str, b: str, c: str, top: int = 5, *, method: Literal["add", "mul"] = "add") -> list[Neighbor]:
        """Words that are to c as b is to a: (man, king, woman) should give queen. The three words are excluded."""
        rows = np.array([[self.row(word) for word in (a, b, c)]])
        return self._best(self._scores(rows, method)[0], rows[0].tolist(), top)

    def formula(self, text: str, top: int = 5) -> list[Neighbor]:
        """Words nearest to a sum of words, such as "king - man + woman". The words of the formula are excluded.

        Vectors have length 1 before they are added, so that each word counts the same.
        """
        terms = parse_formula(text)
        total = sum(sign * self.unit[self.row(word)] for sign, word in terms)
        return self._best(self.unit @ total, [self.row(word) for _, word in terms], top)

    def analogies(
        self, questions: Mapping[str, Sequence[Question]], *, method: Literal["add", "mul"] = "add"
    ) -> dict[str, AnalogyScore]:
        """Score per section: how often the best word is the fourth; questions with unknown words are skipped."""
        return {name: self._section(section, method) for name, section in questions.items()}

    def _section(self, questions: Sequence[Question], method: str) -> AnalogyScore:
        result = [[self.find(word) for word in question] for question in questions]
        known = np.array([rows for rows in result if None not in rows], np.int64).reshape(-1, 4)
        right, step = 0, max(1, AT_ONCE // len(self))
        for first in range(0, len(known), step):
            part = known[first : first + step]
            scores = self._scores(part[:, :3], method)
            np.put_along_axis(scores, part[:, :3], -np.inf, axis=1)
            right += int(np.count_nonzero(scores.argmax(1) == part[:, 3]))
        return AnalogyScore(right, len(known), len(questions))

    def _scores(self, rows: npt.NDArray[np.int64], method: str) -> Floats:
        """Scores of all words for each (a, b, c).

        "add": cosine with b − a + c (3CosAdd, Mikolov et al. 2013). "mul": cos b · cos c / cos a, with cosines shifted
        to 0 … 1 (3CosMul, Levy and Goldberg 2014).
        """
        if method not in ("add", "mul"):
            raise InputError(f'method "{method}" is not one of add, mul.')
        a, b, c = (self.unit[rows[:, i]] for i in range(3))
        result: npt.NDArray[Any]
        if method == "add":
            result = (b - a + c) @ self.unit.T  # king − man + woman
        else:
            far, near, also = ((1 + vectors @ self.unit.T) / 2 for vectors in (a, b, c))
            result = near * also / (far + np.float32(1e-3))
        return result.astype(np.float32, copy=False)

    def _best(self, scores: npt.NDArray[Any], without: list[int], top: int) -> list[Neighbor]:
        if top < 1:
            raise InputError(f"top is {top}, expected 1 or more.")
        scores = scores.copy()
        scores[without] = -np.inf
        top = min(top, len(self) - len(set(without)))
        rows = np.argsort(-scores, kind="stable")[:top]
        return [Neighbor(self.words[row], float(scores[row])) for row in rows]


def parse_formula(text: str) -> list[tuple[int, str]]:
    """The words of a formula, each with 1 or -1: "king - man + woman". Raises InputError for other texts."""
    parts = text.replace("−", "-").split()
    if parts and parts[0] not in ("+", "-"):
        parts.insert(0, "+")
    signs, words = parts[::2], parts[1::2]
    if not words or len(signs) != len(words) or not set(signs) <= {"+", "-"} or {"+", "-"} & set(words):
        raise InputError(f'"{text:.80}" is not a formula of words. Write them with spaces: "king - man + woman".')
    return [(1 if sign == "+" else -1, word) for sign, word in zip(signs, words, strict=True)]


def total_score(scores: Mapping[str, AnalogyScore]) -> AnalogyScore:
    """The sum over all sections."""
    every = scores.values()
    return AnalogyScore(sum(s.right for s in every), sum(s.known for s in every), sum(s.total for s in every))
