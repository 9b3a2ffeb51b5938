"""More rows for students: unlabeled texts, or variants of the training texts. The teacher labels them.

Variants (Tang et al. 2019, https://arxiv.org/abs/1903.12136): a part of the words, with some of them replaced by words
of other training texts. Their labels may differ from those of the original; the teacher says what they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from regard.compression.teacher import Teacher
from regard.data.readers import read
from regard.data.records import AnswerRecord, ClassifyRecord, DocumentRecord, PairRecord, Record, TagRecord
from regard.errors import InputError, setting
from regard.training.load_data import LabeledData, Where, fingerprint

TASKS = {
    "classify": "one per line, or a text column",
    "pair": "two columns of texts",
    "tag": "one per line, or a text column",
    "answer": "questions and contexts",
}
MAX_VARIANTS = 20_000
MAX_WORDS = 1_000_000  # in all variants together
REPLACED = 0.2  # fraction of the words
SHORTEST = 0.5  # part of the words that a variant has at least
BATCH = 512


def can_use(task: str) -> bool:
    """Whether the teacher can label rows for this task as the data has them."""
    return task in TASKS


def read_unlabeled(unlabeled: Where, task: str) -> list[Record]:
    """Texts, pairs of texts or questions with contexts as records; labels that they have are left out."""
    if not can_use(task):
        raise InputError(
            f"{setting('unlabeled')} is for the tasks {', '.join(TASKS)}; this model is for {task}. Leave it out."
        )
    makers: dict[str, Callable[[str], Record]] = {"classify": ClassifyRecord, "tag": TagRecord.from_text}
    if task in makers:
        texts = (record.text for record in read(unlabeled, task="text") if isinstance(record, DocumentRecord))
        records = [makers[task](text) for text in texts if text.strip()]
    else:
        records = [_without_label(record) for record in read(unlabeled, task=task)]
    if not records:
        raise InputError(f"{setting('unlabeled')} holds no texts; expected {TASKS[task]}.")
    return records


def _without_label(record: Record) -> Record:
    if isinstance(record, AnswerRecord):
        return replace(record, answers=None)
    assert isinstance(record, PairRecord)
    return replace(record, label=None)


def variant_count(records: Sequence[Record]) -> int:
    """As many variants as records, unless the teacher would take long to label them."""
    some = records[:: max(len(records) // 100, 1)]
    words = sum(len(text.split()) for record in some for _, text in record.texts) / max(len(some), 1)
    return min(len(records), MAX_VARIANTS, int(MAX_WORDS / max(words, 1.0)))


def variants(records: Sequence[Record], *, count: int, seed: int = 0) -> list[Record]:
    """Changed copies of records, without their labels."""
    words = [word for record in records for _, text in record.texts for word in text.split()]
    results: list[Record] = []
    if not words:
        return results
    change = _Changes(words, random.Random(seed))
    for _ in range(count):
        record = change.chooser.choice(records)
        if isinstance(record, ClassifyRecord):
            results.append(ClassifyRecord(change.text(record.text)))
        elif isinstance(record, PairRecord):
            results.append(PairRecord(change.text(record.first), change.text(record.second)))
        elif isinstance(record, TagRecord):
            results.append(TagRecord.from_tokens(change.words(record.tokens), None))
        elif isinstance(record, AnswerRecord):
            results.append(AnswerRecord(record.id, change.text(record.context), record.question))
    return results


@dataclass(frozen=True)
class _Changes:
    """Cuts texts and replaces words."""

    all_words: Sequence[str]
    chooser: random.Random

    def text(self, text: str) -> str:
        own = text.split()
        return " ".join(self.words(own)) if own else text

    def words(self, own: Sequence[str]) -> list[str]:
        size = max(1, round(len(own) * self.chooser.uniform(SHORTEST, 1)))
        start = self.chooser.randrange(len(own) - size + 1)
        part = own[start : start + size]
        return [self.chooser.choice(self.all_words) if self.chooser.random() < REPLACED else word for word in part]


def with_more_rows(data: LabeledData, teacher: Teacher, unlabeled: Sequence[Record]) -> LabeledData:
    """The data with rows that the teacher has labeled."""
    labeled: list[Record] = []
    for start in range(0, len(unlabeled), BATCH):
        labeled += teacher.label(unlabeled[start : start + BATCH])
        teacher.report(len(labeled), len(unlabeled))
    train = [*data.train, *labeled]
    return replace(data, train=train, fingerprint=fingerprint(train, data.dev))
