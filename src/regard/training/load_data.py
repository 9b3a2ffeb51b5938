"""Labeled data: the records to train on and those to validate on."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.data.atomic import check_output_path
from regard.data.hints import reading_hints
from regard.data.readers import Reader, read, split_names
from regard.data.records import ClassifyRecord, DocumentRecord, PairRecord, Record, TagRecord, TranslateRecord
from regard.data.schema.columns import Columns, one_hot_columns
from regard.data.splits import split_records
from regard.data.usable import has_empty_text, usable_check
from regard.errors import DataError, InputError, pluralize, setting
from regard.tasks import task_class
from regard.training.settings import Settings

DEV_FRACTION = 0.1  # of the rows, for validation
MANY_DEV_ROWS = 450
DEV_FRACTION_OF_MANY = 0.01
LONG_TEXT = 300  # characters from which a text is written once for all records that share it
MAX_WRITTEN = 1000  # such texts in memory
Where = Any  # what `regard.data.readers.read` takes: a path, paths, a folder, a glob, "-", rows in memory


@dataclass(frozen=True)
class LabeledData:
    """Training and validation records, and the task they were recognized for."""

    task: str
    train: list[Record]
    dev: list[Record]
    reason: str  # what the data was recognized as, and why
    split_off: bool  # whether dev was split off here
    fingerprint: str  # the same for the same records
    hints: tuple[str, ...] = ()  # other ways to train on this data that may be meant
    read_options: Mapping[str, Any] = field(default_factory=dict)  # options for reading that the user has given
    bad_rows: int = 0  # unusable rows, written to the file of `skip_bad`


def load_data(
    data: Where | LabeledData,
    *,
    dev: Where | None = None,
    task: str | None = None,
    columns: Columns | None = None,
    dev_fraction: float | None = None,
    seed: int = 0,
    skip_bad: str | Path | None = None,
    **options: Any,
) -> LabeledData:
    """Read training and validation records; the latter from `dev`, the folder's own split, or a fraction split off.

    dev_fraction: see `default_dev_fraction` if None; 0 for no validation records.
    options: further arguments of `regard.data.readers.read`, such as format, encoding and labels.
    """
    if isinstance(data, LabeledData):
        _check_unchanged(data, task, {"dev": dev, "columns": columns, "skip_bad": skip_bad, **options})
        return data
    if skip_bad is not None:
        check_output_path(Path(skip_bad), "skip_bad", inputs=[data, dev])
    return _read_data(data, dev, task, columns, dev_fraction, seed, skip_bad, options)


def _read_data(
    data: Where,
    dev: Where | None,
    task: str | None,
    columns: Columns | None,
    dev_fraction: float | None,
    seed: int,
    skip_bad: str | Path | None,
    options: Mapping[str, Any],
) -> LabeledData:
    inside = split_names(data)
    reader = read(data, split="train" if inside else None, task=task, columns=columns, skip_bad=skip_bad, **options)
    _check_labeled(reader, task)
    if skip_bad is not None:
        reader.check = usable_check(reader.schema)
    records = list(reader)
    _warn_of_empty_texts(records)
    name = task or reader.schema.task
    other = _dev_reader(data, dev, inside, reader, columns, options)
    if other is not None:
        dev_records = list(other)
        _check_overlap(records, dev_records)
    elif dev_fraction != 0:
        fraction = default_dev_fraction(len(records)) if dev_fraction is None else dev_fraction
        records, dev_records = _split_off(records, fraction, seed, name)
    else:
        dev_records = []
    other_uses = _hints(reader, [*records, *dev_records], task, options.get("labels"))
    read_options = _read_options(reader, columns, options.get("encoding"))
    return LabeledData(
        task=name,
        train=records,
        dev=dev_records,
        reason=reader.summary,
        split_off=other is None,
        fingerprint=fingerprint(records, dev_records),
        hints=other_uses,
        read_options=read_options,
        bad_rows=reader.bad_rows + (0 if other is None else other.bad_rows),
    )


def _check_labeled(reader: Reader, task: str | None) -> None:
    """Raise DataError for texts without labels, unless the user has given a task that needs none."""
    if task in ("classify", "pair"):
        _check_label_column(reader)
    if task is not None or reader.schema.task != DocumentRecord.type_name:
        return
    name = reader.sources[0][0].name
    raise DataError(
        f"has texts without labels (read as {reader.schema.format}: {reader.schema.reason})",
        file=name,
        expected="rows with a text and a label, such as a CSV file with the columns text and label",
        fix=f"Use regard pretrain to train a language model on plain text. If the file has labels, name its format "
        f"and its columns with {setting('format')} and {setting('columns')}.",
    )


def _check_label_column(reader: Reader) -> None:
    """Raise DataError if no column of the data has labels."""
    schema = reader.schema
    if not schema.columns or "label" in schema.columns or schema.style.one_hot:
        return
    names = [*schema.columns.values(), *schema.unused]
    raise DataError(
        f"no column for the label was recognized; the columns are: {', '.join(names[:12]):.200}",
        file=reader.sources[0][0].name,
        fix='If one of them has the labels, name it: --columns label=NAME (columns={"label": "NAME"} in Python).',
    )


def default_dev_fraction(rows: int) -> float:
    """A tenth of the rows; of more than 5,000 rows only 450 and one percent, which measure well enough."""
    return min(DEV_FRACTION, (MANY_DEV_ROWS + DEV_FRACTION_OF_MANY * rows) / max(rows, 1))


def _split_off(
    records: list[Record], fraction: float, seed: int, task: str | None = None
) -> tuple[list[Record], list[Record]]:
    """Training and validation records, the latter a fraction of all."""
    try:
        parts = split_records(records, {"train": 1 - fraction, "dev": fraction}, seed=seed, rare_labels="train")
    except InputError as error:
        if task is not None:
            task_class(task).from_records(records)  # a missing label or a single class is the better error
        rows, share = pluralize(len(records), "row"), f"{100 * fraction:.2g} %"
        problem = f"{rows} are too few to split {share} off for validation."
        if fraction * len(records) >= 1:
            problem = (
                f"{share} of these {rows} cannot be split off for validation: rows with equal texts, or of one "
                "document, stay together."
            )
        raise InputError(
            f"{problem} Give more rows, or validation rows with {setting('dev')}; {setting('dev_fraction', 0)} trains "
            "on all rows, without a score."
        ) from error
    return [records[row] for row in parts["train"]], [records[row] for row in parts["dev"]]


def _check_unchanged(data: LabeledData, task: str | None, options: Mapping[str, Any]) -> None:
    """Refuse options for reading if the data was read already."""
    if names := [name for name, value in options.items() if value is not None]:
        raise InputError(f"this data is read already, so {' and '.join(names)} cannot change it. Leave them out.")
    if task not in (None, data.task):
        raise InputError(f'this data is read already, for task {data.task}, not "{task}". Leave {setting("task")} out.')


def _read_options(reader: Reader, columns: Columns | None, encoding: str | None) -> dict[str, Any]:
    """What evaluation and prediction need to read other files in the same way, for run.json."""
    known = reader.schema
    several = one_hot_columns(columns or {})
    named: dict[str, Any] = {role: known.columns.get(role, str(name)) for role, name in (columns or {}).items()}
    if several:
        named["label"] = list(known.style.one_hot or several)
    separator = known.style.separator if known.labels == "multi" else None
    return {"columns": named, "labels": known.labels, "separator": separator, "encoding": encoding}


def _hints(reader: Reader, records: list[Record], task: str | None, kind: str | None) -> tuple[str, ...]:
    """Other uses of the data that may be meant; one that would train a poor model is a warning."""
    labels = {record.label for record in records if isinstance(record, ClassifyRecord | PairRecord)}
    names = {label for label in labels if isinstance(label, str)}
    messages = []
    for hint in reading_hints(reader.schema, names, task=task, kind=kind):
        text = f"{hint.message}. {hint.fix}"
        if hint.kind == "joined-labels":
            warnings.warn(text, UserWarning, stacklevel=2)
        else:
            messages.append(text)
    return tuple(messages)


def _dev_reader(
    data: Where, dev: Where | None, inside: tuple[str, ...], reader: Reader, columns: Any, options: Mapping[str, Any]
) -> Reader | None:
    if dev is not None:
        part = "valid" if "valid" in split_names(dev) else None
        return read(dev, split=part, columns=columns, like=reader.schema, **options)
    if "valid" in inside:
        return read(data, split="valid", columns=columns, like=reader.schema, **options)
    return None


def _check_overlap(train: list[Record], dev: list[Record]) -> None:
    """Rows in both parts make the scores too good: an error if they are many, a warning if they are few."""
    known = {record.input_texts for record in train}
    both = [record for record in dev if record.input_texts in known]
    if not both:
        return
    at = _at(both[0])
    if len(both) > len(dev) / 2:
        raise InputError(
            f"{len(both)} of {len(dev)} validation rows are also in the training data (the first: {at}), so "
            f"their score would be meaningless. Give other rows with {setting('dev')}, or leave it out."
        )
    warnings.warn(
        f"{len(both)} of {len(dev)} validation rows are also in the training data (the first: {at}); "
        "the score is a little too high.",
        UserWarning,
        stacklevel=2,
    )


def _warn_of_empty_texts(records: list[Record]) -> None:
    """Such rows teach nothing about words, and predictions refuse them."""
    empty = [record for record in records if has_empty_text(record)]
    if empty:
        have = "has" if len(empty) == 1 else "have"
        rows = f"{len(empty):,} of {pluralize(len(records), 'row')} {have} an empty text (the first: {_at(empty[0])})"
        warnings.warn(f"{rows}; regard check DATA --fix FILE removes them.", UserWarning, stacklevel=3)


def _at(record: Record) -> str:
    where = record.place
    return f"{where.file} line {where.line}" if where.line else f"{where.file} row {where.row}"


def texts_of(records: Iterable[Record]) -> Iterator[str]:
    """Every text of the records: what a vocabulary is learned from."""
    for record in records:
        yield from (text for _, text in record.texts)


def vocabulary_texts(data: LabeledData, settings: Settings) -> dict[str, Iterator[str]]:
    """The texts that vocabularies are learned from: one from all, or one from each side of a translation."""
    if not task_class(data.task).separate_vocabularies:
        unused = {"vocabularies": settings.vocabularies != "joint", "prefix": settings.prefix is not None}
        unused |= {"beams": settings.beams > 1}
        for name in (name for name, is_given in unused.items() if is_given):
            raise InputError(f"{setting(name)} was given, but the task is {data.task}; only translate takes it.")
    if settings.vocabularies == "joint":
        return {"texts": texts_of(data.train)}
    pairs = [record for record in data.train if isinstance(record, TranslateRecord)]
    return {"texts": (pair.source for pair in pairs), "targets": (pair.target for pair in pairs)}


def fingerprint(train: list[Record], dev: list[Record]) -> str:
    """A digest of all values of the records."""
    known = hashlib.blake2b(digest_size=16)
    written: dict[str, str] = {}  # long texts that many records share, such as a context
    for part in (train, dev):
        known.update(str(len(part)).encode())
        for record in part:
            values = [_written(value, written) for value in record.values]
            known.update(f"[{', '.join(values)}]".encode("utf-8", "surrogatepass"))
            if isinstance(record, TagRecord) and record.document is not None:
                known.update(record.document.encode("utf-8", "surrogatepass"))
    return known.hexdigest()


def _written(value: Any, written: dict[str, str]) -> str:
    """A value as Python writes it."""
    if type(value) is not str or len(value) < LONG_TEXT:
        return repr(value)
    if value not in written:
        if len(written) >= MAX_WRITTEN:
            written.clear()
        written[value] = repr(value)
    return written[value]
