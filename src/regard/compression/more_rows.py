"""More rows for students: unlabeled texts, or variants of the training texts. The teacher labels them.

Variants (Tang et al. 2019, https://arxiv.org/abs/1903.12136): a part of the words, with some of them replaced by near
words in the teacher's embedding table, or by words of other training texts. Their labels may differ from those of the
original; the teacher says what they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from regard.compression.teacher import Teacher
from regard.data.readers import read
from regard.data.records import ClassifyRecord, DocumentRecord, PairRecord, Record, TagRecord
from regard.errors import InputError, setting
from regard.training.load_data import LabeledData, Where, fingerprint

MAX_VARIANTS = 20_000
REPLACED = 0.2  # fraction of the words
NEAR = 0.75  # fraction of the replacements that are near words, where a word has some
SHORTEST = 0.5  # part of the words that a variant has at least
BATCH = 1024
Neighbors = Mapping[str, Sequence[str]]


def can_use(task: str) -> bool:
    """Whether the teacher can label rows for this task as the data has them."""
    return task in ("classify", "pair", "tag")


def read_unlabeled(unlabeled: Where, task: str) -> list[Record]:
    """Texts without labels as records."""
    makers: dict[str, Callable[[str], Record]] = {"classify": ClassifyRecord, "tag": TagRecord.from_text}
    if task not in makers:
        raise InputError(
            f"{setting('unlabeled')} is for the tasks {' and '.join(makers)}; this model is for {task}. Leave it out."
        )
    texts = (record.text for record in read(unlabeled, task="text") if isinstance(record, DocumentRecord))
    records = [makers[task](text) for text in texts if text.strip()]
    if not records:
        raise InputError(f"{setting('unlabeled')} holds no texts; expected one per line, or a text column.")
    return records


def variants(
    records: Sequence[Record], *, count: int, seed: int = 0, neighbors: Neighbors | None = None
) -> list[Record]:
    """Changed copies of records, without their labels. neighbors: near words of words, see `word_neighbors`."""
    words = words_of(records)
    results: list[Record] = []
    if not words:
        return results
    change = _Changes(words, neighbors or {}, random.Random(seed))
    for _ in range(count):
        record = change.chooser.choice(records)
        if isinstance(record, ClassifyRecord):
            results.append(ClassifyRecord(change.text(record.text)))
        elif isinstance(record, PairRecord):
            results.append(PairRecord(change.text(record.first), change.text(record.second)))
        elif isinstance(record, TagRecord):
            results.append(TagRecord.from_tokens(change.words(record.tokens), None))
    return results


def words_of(records: Sequence[Record]) -> list[str]:
    """All words of all texts."""
    return [word for record in records for _, text in record.texts for word in text.split()]


@dataclass(frozen=True)
class _Changes:
    """Cuts texts and replaces words."""

    all_words: Sequence[str]
    neighbors: Neighbors
    chooser: random.Random

    def text(self, text: str) -> str:
        own = text.split()
        return " ".join(self.words(own)) if own else text

    def words(self, own: Sequence[str]) -> list[str]:
        size = max(1, round(len(own) * self.chooser.uniform(SHORTEST, 1)))
        start = self.chooser.randrange(len(own) - size + 1)
        part = own[start : start + size]
        return [self._other(word) if self.chooser.random() < REPLACED else word for word in part]

    def _other(self, word: str) -> str:
        near = self.neighbors.get(word) or self.neighbors.get(word.lower())
        if not near or self.chooser.random() >= NEAR:
            return self.chooser.choice(self.all_words)
        chosen = self.chooser.choice(near)
        return chosen.capitalize() if word[0].isupper() else chosen


def with_more_rows(data: LabeledData, teacher: Teacher, unlabeled: Sequence[Record]) -> LabeledData:
    """The data with rows that the teacher has labeled."""
    labeled: list[Record] = []
    for start in range(0, len(unlabeled), BATCH):
        labeled += teacher.label(unlabeled[start : start + BATCH])
    train = [*data.train, *labeled]
    return replace(data, train=train, fingerprint=fingerprint(train, data.dev))
