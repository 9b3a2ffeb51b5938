"""The labeled texts of a data set, as explanations take them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Record, TagRecord, TranslateRecord
from regard.data.schema.columns import Columns
from regard.data.sources.locate import DataLocation
from regard.errors import InputError, setting
from regard.evaluation.open_data import open_data
from regard.predict import Model


class DataItem(NamedTuple):
    """A text, its second text (or context), and its label if there is one."""

    text: str
    pair: str | None = None
    label: str | None = None


def read_items(
    model: Model,
    data: DataLocation | Sequence[str],
    *,
    max_rows: int | None = None,
    split: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
) -> list[DataItem]:
    """The texts of a file, a folder or rows in memory, read as in the training of the model; or a list of texts.

    max_rows: rows that are taken, a random sample; all if None.
    """
    if max_rows is not None and max_rows < 1:
        raise InputError(f"{setting('max_rows')} is {max_rows}, expected at least 1.")
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | DataItem) for one in data):
        items = [one if isinstance(one, DataItem) else DataItem(one) for one in data]
    else:
        _, reader = open_data(model, data, split=split, format=format, columns=columns, encoding=encoding)
        items = [_item(record) for record in reader]
    if not items:
        raise InputError("there is no text in the data.")
    return sample_rows(items, max_rows)


def sample_rows(items: Sequence[Any], count: int | None) -> list[Any]:
    """At most `count` items at random, always the same ones, in their order."""
    if count is None or len(items) <= count:
        return list(items)
    chosen = random.Random(0).sample(range(len(items)), count)
    return [items[number] for number in sorted(chosen)]


def _item(record: Record) -> DataItem:
    if isinstance(record, PairRecord):
        return DataItem(record.first, record.second, _label(record.label))
    if isinstance(record, AnswerRecord):
        return DataItem(record.question, record.context)
    if isinstance(record, TranslateRecord):
        return DataItem(record.source)
    if isinstance(record, ClassifyRecord):
        return DataItem(record.text, None, _label(record.label))
    if isinstance(record, TagRecord):
        return DataItem(record.text)
    raise InputError("rows of this kind cannot be explained; expected texts, pairs, questions or sentences.")


def _label(label: Any) -> str | None:
    if label is None or isinstance(label, float):
        return None
    return str(label) if isinstance(label, str) else "|".join(map(str, label))
