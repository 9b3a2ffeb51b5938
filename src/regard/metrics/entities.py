"""Scores of tags: entities found whole, and words tagged right.

There are two ways to read tags that break the rules of IOB2, as predicted ones do. `lenient` is how conlleval reads
them, as in most published results: an `I-` without an entity before it starts one. `strict` takes an
entity only where a `B-` opens it; other `I-` are none (`mode="strict"` of seqeval). On well-formed tags they agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from regard.errors import InputError
from regard.metrics.scores import LabelCounts

TAG = re.compile(r"O|([BI])(?:-(.*))?", re.DOTALL)
Span = tuple[int, int, str]


@lru_cache(maxsize=4096)
def _parts(tag: str) -> tuple[str, str]:
    entities = TAG.fullmatch(tag)
    if entities is None:
        raise InputError(
            f'"{tag}" is no tag of entities; expected "O", "B-…" or "I-…". '
            "Turn other schemes into IOB2 first; score parts of speech by token accuracy."
        )
    return entities[1] or "O", entities[2] or "_"


def entity_spans(tags: Sequence[str], *, strict: bool = False) -> list[Span]:
    """First word, last word (exclusive) and type of each entity."""
    entities: list[Span] = []
    first, kind = 0, ""  # the entity that is open; no type is empty
    for index, tag in enumerate(tags):
        if tag == "O" and not kind:
            continue
        letter, label = _parts(tag)
        if letter == "I" and label == kind:
            continue
        if kind:
            entities.append((first, index, kind))
        first, kind = index, "" if letter == "O" else label
    if kind:
        entities.append((first, len(tags), kind))
    return strict_spans(entities, tags) if strict else entities


def strict_spans(entities: Sequence[Span], tags: Sequence[str]) -> list[Span]:
    """The lenient entities that are strict ones too: a B- opens them; both ways agree on where it ends."""
    return [span for span in entities if tags[span[0]][0] == "B"]


class EntityCounts:
    """Entities hit, predicted and true, for each type, over records that are added one by one."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._types: dict[str, list[int]] = {}

    def add(self, predicted: Sequence[str], gold: Sequence[str]) -> tuple[int, int, int]:
        """The tags of one record; its own entities hit, predicted and true."""
        check_same_length(predicted, gold)
        return self.add_spans(entity_spans(predicted, strict=self.strict), entity_spans(gold, strict=self.strict))

    def add_spans(self, predicted: Sequence[Span], gold: Sequence[Span]) -> tuple[int, int, int]:
        """The entities of one record."""
        hits = set(predicted) & set(gold)
        for index, some in enumerate((hits, predicted, gold)):
            for _, _, kind in some:
                self._types.setdefault(kind, [0, 0, 0])[index] += 1
        return len(hits), len(predicted), len(gold)

    @property
    def types(self) -> list[str]:
        return sorted(self._types)

    def counts(self) -> LabelCounts:
        """Of each type, in the order of `types`; its `micro()` is what conlleval calls the overall score."""
        table = np.array([self._types[kind] for kind in self.types], np.int64).reshape(-1, 3)
        return LabelCounts(table[:, 0], table[:, 1], table[:, 2])

    def per_type(self) -> dict[str, dict[str, float]]:
        """Precision, recall, F1 and support of each type."""
        counts = self.counts()
        columns = zip(counts.precision, counts.recall, counts.f1, counts.support, strict=True)
        names = ("precision", "recall", "f1", "support")
        return {
            kind: dict(zip(names, map(float, row), strict=True)) for kind, row in zip(self.types, columns, strict=True)
        }


def entity_counts(
    predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], *, strict: bool = False
) -> EntityCounts:
    """Of records that are here already."""
    if len(predicted) != len(gold):
        raise InputError(f"{len(predicted)} records of predicted tags for {len(gold)} of gold; expected as many.")
    entities = EntityCounts(strict=strict)
    for ours, theirs in zip(predicted, gold, strict=True):
        entities.add(ours, theirs)
    return entities


def token_hits(predicted: Sequence[object], gold: Sequence[object]) -> tuple[int, int]:
    """The number of words with the right tag, and of all words of a record; for parts of speech."""
    check_same_length(predicted, gold)
    return sum(ours == theirs for ours, theirs in zip(predicted, gold, strict=True)), len(gold)


def check_same_length(predicted: Sequence[object], gold: Sequence[object]) -> None:
    """Raise an error unless every word has a predicted tag: a truncated record is not scored."""
    if len(predicted) != len(gold):
        raise InputError(
            f"{len(predicted)} predicted tags for {len(gold)} gold ones; expected one a word. "
            "Predict in windows where a text is too long."
        )
