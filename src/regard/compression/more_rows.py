"""More rows for students: unlabeled texts, or variants of the training texts. The teacher labels them.

Variants (Tang et al. 2019, https://arxiv.org/abs/1903.12136): a part of the words, with some of them replaced by words
of other training texts. Their labels may differ from those of the original; the teacher says what they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from regard.compression.teacher import Teacher
from regard.data.readers import read
from regard.data.records import ClassifyRecord, DocumentRecord, PairRecord, Record, TagRecord
from regard.errors import InputError, setting
from regard.training.load_data import LabeledData, Where, fingerprint

MAX_VARIANTS = 20_000
REPLACED = 0.15  # fraction of the words
SHORTEST = 0.5  # part of the words that a variant has at least
BATCH = 1024


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


def variants(records: Sequence[Record], *, count: int, seed: int = 0) -> list[Record]:
    """Changed copies of records, without their labels."""
    chooser = random.Random(seed)
    words = [word for record in records for _, text in record.texts for word in text.split()]
    results: list[Record] = []
    if not words:
        return results
    for _ in range(count):
        record = chooser.choice(records)
        if isinstance(record, ClassifyRecord):
            results.append(ClassifyRecord(_changed(record.text, words, chooser)))
        elif isinstance(record, PairRecord):
            first, second = (_changed(text, words, chooser) for text in (record.first, record.second))
            results.append(PairRecord(first, second))
        elif isinstance(record, TagRecord):
            results.append(TagRecord.from_tokens(_changed_words(record.tokens, words, chooser), None))
    return results


def _changed(text: str, words: Sequence[str], chooser: random.Random) -> str:
    own = text.split()
    return " ".join(_changed_words(own, words, chooser)) if own else text


def _changed_words(own: Sequence[str], words: Sequence[str], chooser: random.Random) -> list[str]:
    size = max(1, round(len(own) * chooser.uniform(SHORTEST, 1)))
    start = chooser.randrange(len(own) - size + 1)
    part = own[start : start + size]
    return [chooser.choice(words) if chooser.random() < REPLACED else word for word in part]


def with_more_rows(data: LabeledData, teacher: Teacher, unlabeled: Sequence[Record]) -> LabeledData:
    """The data with rows that the teacher has labeled."""
    labeled: list[Record] = []
    for start in range(0, len(unlabeled), BATCH):
        labeled += teacher.label(unlabeled[start : start + BATCH])
    train = [*data.train, *labeled]
    return replace(data, train=train, fingerprint=fingerprint(train, data.dev))
