"""What a file is, from its beginning: its format, its task, and which column is what."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from regard.data.convert import Make, maker
from regard.data.formats import conll, parquet
from regard.data.formats import delimited as tables
from regard.data.formats import json_files as objects
from regard.data.formats import plain_text as texts
from regard.data.formats.annotations import annotated_roles, layout_of, plain_rows
from regard.data.formats.detect import check_text, delimiter_of, format_of, quoted, whole_lines
from regard.data.formats.lines import OnBadRow, Row
from regard.data.labels import JOINED, SINGLE, LabelStyle, infer_label_style, to_number
from regard.data.memory import MemorySource
from regard.data.names import (
    COLUMN_ALIASES,
    COLUMNS_HELP,
    Columns,
    assign_columns,
    check_roles,
    find_column,
    is_header,
    one_hot_columns,
    record_type_of_task,
)
from regard.data.records import Place
from regard.data.sources import FIRST_READ, Source, holds_splits
from regard.data.tags import infer_scheme, normalize_scheme
from regard.errors import DataError, InputError, did_you_mean, setting
from regard.text.file_encodings import UTF8, parse_encoding

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "conll", "trec", "text", "lines", "aligned")
LABELS = ("class", "single", "multi", "number")
SAMPLE = 500
SECOND_READ = 1 << 24
LABEL = re.compile(r"[\w.+:/|-]{1,40}")


@dataclass(frozen=True)
class ReadOptions:
    """What the user says of a file; None is for us to find out."""

    columns: Mapping[str, str]
    format: str | None = None
    task: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    labels: str | None = None
    scheme: str | None = None
    encoding: str | None = None
    separator: str | None = None
    one_hot: tuple[str, ...] = ()

    @classmethod
    def validated(cls, *, columns: Columns | None = None, **told: Any) -> ReadOptions:
        """With every name known."""
        for name, known in (("format", FORMATS), ("labels", LABELS)):
            if told.get(name) is not None and told[name] not in known:
                raise InputError(f'{setting(name)}: "{told[name]}" is not known.{did_you_mean(told[name], known)}')
        if told.get("task") is not None:
            told["task"] = record_type_of_task(told["task"])
        if told.get("scheme") is not None:
            told["scheme"] = normalize_scheme(told["scheme"])
        if told.get("encoding") is not None:
            told["encoding"] = parse_encoding(told["encoding"])
        one_hot = one_hot_columns(columns or {})
        if one_hot and told.get("labels") == "number":
            raise InputError(
                f"{setting('labels', 'number')} was given with several label columns; numbers are read from one column."
            )
        return cls(columns=check_roles(columns or {}), one_hot=one_hot, **told)


@dataclass(frozen=True)
class Schema:
    """What a file was found to be, and why, in words to say."""

    format: str
    task: str
    columns: Mapping[str, str]
    reason: str
    delimiter: str = ","
    header: bool = True
    quoting: bool = True
    style: LabelStyle = SINGLE
    scheme: str = "iob2"
    decimal_comma: str | None = None  # the column with numbers such as 3,5
    encoding: str = UTF8
    part: str | None = None  # the split, of a file that holds several
    export: str = ""  # the tool that wrote the rows, where they are rearranged before they are read

    @property
    def labels(self) -> str:
        """What labels are: single, class, multi or number."""
        return self.style.kind

    def parser(self) -> Make:
        """What makes a record of a row."""
        return maker(self.task, self.columns, style=self.style, scheme=self.scheme)

    def __str__(self) -> str:
        columns = ", ".join(f"{role}={name}" for role, name in self.columns.items())
        return f"{self.format} for {self.task} ({columns}): {self.reason}"


def rows(stream: BinaryIO, name: str, schema: Schema, bad: OnBadRow) -> Iterator[Row]:
    """The rows of a file of a known format; those of an annotation tool as plain rows."""
    return convert_export(_rows(stream, name, schema, bad), schema, bad)


def convert_export(written: Iterator[Row], found: Schema, bad: OnBadRow) -> Iterator[Row]:
    """Rows as they were written, as plain rows."""
    if not found.export:
        return written
    return plain_rows(written, found.export, found.columns, bad, labeled=found.task != "text")


def _rows(stream: BinaryIO, name: str, found: Schema, bad: OnBadRow) -> Iterator[Row]:
    if found.format in ("csv", "tsv"):
        return tables.rows(
            stream,
            name,
            bad,
            delimiter=found.delimiter,
            quoting=found.quoting,
            header=found.header,
            decimal_comma=found.decimal_comma,
        )
    if found.format == "json":
        return objects.item_rows(stream, name, bad, found.part)
    read = {
        "jsonl": objects.line_rows,
        "trec": texts.trec_rows,
        "parquet": parquet.rows,
        "conll": conll.rows,
        "text": texts.document_rows,
        "lines": texts.line_rows,
    }
    return read[found.format](stream, name, bad)


def infer_schema(source: Source, told: ReadOptions) -> Schema:
    """Look at the beginning of a file; at more of it where that is too little to know."""
    if isinstance(source, MemorySource):
        layout = Schema("rows", "", {}, "it is in memory")
        return from_sample(source.name, layout, told, source.sample(SAMPLE))
    head = source.head()
    check_text(head, source.name)
    try:
        return _recognise(source, head, told)
    except DataError:
        if len(head) < FIRST_READ:
            raise
    return _recognise(source, source.head(SECOND_READ), told)


def _recognise(source: Source, head: bytes, told: ReadOptions) -> Schema:
    format, why = (told.format, "as told") if told.format else format_of(head, source.suffix)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise DataError("holds nothing but space", file=source.name, expected="at least one row")
    layout = Schema(format, "", {}, why, encoding=source.detected_encoding().name)
    if format in ("csv", "tsv"):
        return _table(source.name, whole_lines(head), layout, told)
    if format in ("text", "lines"):
        return _plain(source.name, layout, told)
    if format == "json" and holds_splits(head):
        part = source.split or "train"
        layout = replace(layout, part=part, reason=f"{why}; this is {part}")
    sample = _sample(source, head, layout)
    if format == "conll":
        return _conll(source.name, layout, told, sample)
    if format == "json" and b'"paragraphs"' in head and not objects.is_spacy(head):
        return _squad(source.name, layout, told)
    return from_sample(source.name, layout, told, sample)


def from_sample(name: str, layout: Schema, told: ReadOptions, sample: list[dict[str, Any]]) -> Schema:
    """By the names and the values of the first rows."""
    tool = layout_of(sample)
    if tool:
        faults: list[DataError] = []
        raw = (Row(Place(name), row, "") for row in sample)
        kept = plain_rows(raw, tool, {}, lambda error, _: faults.append(error), labeled=told.task != "text")
        sample = [row.values for row in kept]
        if faults and not sample:
            what = f"no row of the first {len(faults)} can be used: {faults[0].message}"
            raise DataError(what, file=name, expected="at least one that was annotated and accepted")
        layout = replace(layout, export=tool, reason=f"{layout.reason}; {tool}")
    names = list(dict.fromkeys(name for row in sample for name in row))
    if not names:
        raise DataError("holds no row that can be read", file=name, expected="at least one object with columns")
    return _named(name, layout, told, names, sample)


def _sample(source: Source, head: bytes, layout: Schema) -> list[dict[str, Any]]:
    """The first rows. What is wrong with them is said when they are read."""
    if layout.format == "parquet":
        source.copy_to_disk()
        with source.open() as stream:
            found = itertools.islice(parquet.rows(stream, source.name, _ignore), SAMPLE)
            return [row.values for row in found]
    sample = head if layout.format == "json" else whole_lines(head).encode()
    kept = []
    try:
        for row in itertools.islice(rows(io.BytesIO(sample), source.name, layout, _ignore), SAMPLE):
            kept.append(row.values)  # noqa: PERF401 (the rows before a fault are kept)
    except DataError:
        if not kept and len(head) < FIRST_READ:  # not the end of the sample, so a fault of the file
            raise
    return kept


def _ignore(error: DataError, raw: str) -> None:
    """A sample passes over bad rows."""


def _plain(name: str, layout: Schema, told: ReadOptions) -> Schema:
    task = told.task or "text"
    if task not in ("text", "classify"):
        raise DataError(f"is plain text ({layout.reason})", file=name, expected=f"columns for {task}")
    return replace(layout, task=task, columns={"text": "text"})


def _squad(name: str, layout: Schema, told: ReadOptions) -> Schema:
    if told.task not in (None, "answer"):
        raise DataError("is SQuAD, for the task answer", file=name, expected=f"data for {told.task}")
    columns = {"id": "id", "context": "context", "question": "question", "answers": "answers", "group": "title"}
    return replace(layout, task="answer", columns={**columns, **told.columns}, reason="it is SQuAD's JSON")


def _conll(name: str, layout: Schema, told: ReadOptions, sample: Sequence[dict[str, Any]]) -> Schema:
    if not sample:
        raise DataError("holds no sentence that can be read", file=name, expected="a word and its tag a line")
    names = [column for column in sample[0] if column != "line"]
    if told.task not in (None, "tag"):
        raise DataError("holds tagged words, for the task tag", file=name, expected=f"data for {told.task}")
    if len(names) < 2:
        raise DataError("has one column", file=name, expected="a word and its tag on each line")
    _, columns = assign_columns(names, {"tokens": "0", "tags": names[-1], **told.columns}, "tag", name)
    scheme = told.scheme or infer_scheme(row[columns["tags"]] for row in sample)
    return replace(layout, task="tag", columns=columns, scheme=scheme, reason=f"{layout.reason}; tags are {scheme}")


def _table(name: str, text: str, layout: Schema, told: ReadOptions) -> Schema:
    delimiter = delimiter_of(layout.format, text)
    quoting = told.quoting
    if quoting is None:
        quoting = layout.format == "csv" or quoted(text, delimiter)
    cells = _cells(text, name, delimiter=delimiter, quoting=quoting)
    if not cells:
        raise DataError("holds no row that can be read", file=name, expected="a table with a header", fix=COLUMNS_HELP)
    named = {**told.columns, **{f"label {column}": column for column in told.one_hot}}
    header = is_header(cells[0], named) if told.header is None else told.header
    why = f"{layout.reason}; {'the first row names the columns' if header else 'no header'}"
    why += "" if quoting or layout.format == "csv" else "; quotes are mere characters"
    layout = replace(layout, delimiter=delimiter, quoting=quoting, header=header, reason=why)
    if not header and not told.columns:
        return _guessed(name, layout, told, cells)
    names = cells[0] if header else [str(number) for number in range(len(cells[0]))]
    sample = [dict(zip(names, values, strict=False)) for values in cells[1 if header else 0 :]]
    if not sample:
        raise DataError("has a header but no row", file=name, expected="at least one row")
    if delimiter != "," and told.labels != "multi":
        layout, sample = _with_points(layout, told, names, sample)
    return _named(name, layout, told, names, sample)


def _with_points(
    layout: Schema, told: ReadOptions, names: Sequence[str], sample: list[dict[str, Any]]
) -> tuple[Schema, list[dict[str, Any]]]:
    """Labels such as 3,5 are numbers where nothing else is in their column: then they are read as 3.5."""
    column = told.columns.get("label") or next(
        (name for name in names if name.strip().lower() in COLUMN_ALIASES["label"]), ""
    )
    values = [row[column] for row in sample if row.get(column)]
    broken = [value for value in values if tables.DECIMAL.fullmatch(value)]
    if not broken or any(to_number(tables.with_point(value)) is None for value in values):
        return layout, sample
    changed = [row | {column: tables.with_point(row[column])} if row.get(column) else row for row in sample]
    return replace(layout, decimal_comma=column), changed


def _cells(text: str, name: str, *, delimiter: str, quoting: bool) -> list[list[str]]:
    """The first rows of a table, up to one that may go on after the sample."""
    sample = text.encode()
    size = len(sample)

    def bad(error: DataError, raw: str) -> None:
        if isinstance(error, tables.OpenQuote) and size >= FIRST_READ // 2:
            raise error

    found: list[list[str]] = []
    stream = io.BytesIO(sample)
    with contextlib.suppress(tables.OpenQuote):
        for _, values, _ in tables.cells(stream, name, bad, delimiter=delimiter, quoting=quoting):
            found.append(values)
            if len(found) == SAMPLE:
                break
    return found


def _guessed(name: str, layout: Schema, told: ReadOptions, cells: Sequence[Sequence[str]]) -> Schema:
    """Two columns without known names: a text and its label, or in a TSV a text and its translation."""
    shown = " | ".join(f"{cell:.30}" for cell in cells[0][:6])
    fault = DataError(f"has no column with a known name (the first row is: {shown})", file=name, fix=COLUMNS_HELP)
    pairs = [row for row in cells if len(row) == 2]
    if len(cells[0]) != 2 or told.task not in (None, "classify", "translate"):
        raise fault
    label = next((side for side in (1, 0) if _label_like([row[side] for row in pairs[1:]])), None)
    if told.task != "translate" and label is not None:
        values = [row[label] for row in pairs[1:]]
        header = pairs[0][label] not in values
        names = pairs[0] if header else ["0", "1"]
        columns = {"text": names[1 - label], "label": names[label]}
        why = f"{layout.reason}; column {label} repeats like a label"
        layout = replace(layout, task="classify", columns=columns, header=header, reason=why)
        return _labelled(layout, told, values)
    if told.task == "classify" or layout.format != "tsv":
        raise fault
    why = f"{layout.reason}; two columns of text are taken for a text and its translation"
    return replace(layout, task="translate", columns={"source": "0", "target": "1"}, reason=why)


def _label_like(values: Sequence[str]) -> bool:
    return (
        len(values) > 1
        and all(LABEL.fullmatch(value) and not value.endswith(".") for value in values)
        and len(set(values)) <= max(2, len(values) // 2)
    )


def _named(
    name: str, layout: Schema, told: ReadOptions, names: Sequence[str], sample: Sequence[dict[str, Any]]
) -> Schema:
    """By the names of the columns, and by their values where these are annotations."""
    one_hot = tuple(find_column("label", column, names, name) for column in told.one_hot)
    given = annotated_roles(names, sample, told.columns, told.task, name)
    task, columns = assign_columns([*names, *([given["label"]] if one_hot else [])], given, told.task, name)
    unused = [column for column in names if column not in columns.values() and column not in one_hot]
    why = layout.reason + (f"; not used: {', '.join(unused[:8]):.120}" if unused else "")
    found = replace(layout, task=task, columns=columns, reason=why)
    if one_hot:
        why = f"{why}; one label for each of {len(one_hot)} columns"
        return replace(found, style=LabelStyle(told.labels or "multi", one_hot=one_hot), reason=why)
    if task in ("classify", "pair") and "label" in columns:
        return _labelled(found, told, [row.get(columns["label"]) for row in sample])
    if task == "tag" and "tags" in columns:
        scheme = told.scheme or _scheme([row.get(columns["tags"]) for row in sample])
        return replace(found, scheme=scheme, reason=f"{found.reason}; tags are {scheme}")
    if "translation" in columns:
        return replace(found, columns={**_languages(name, columns, sample), **columns})
    return found


def _labelled(found: Schema, told: ReadOptions, values: Sequence[Any]) -> Schema:
    """With the way its labels are written."""
    style = infer_label_style(values, found.columns["label"], kind=told.labels, separator=told.separator)
    why = found.reason
    if style.kind == "multi" and (style.separator != JOINED or told.labels == "multi"):
        why = f'{why}; labels are separated by "{style.separator}"'
    return replace(found, style=style, reason=why)


def _scheme(values: Sequence[Any]) -> str:
    split = [value.split() if isinstance(value, str) and value[:1] != "[" else value for value in values]
    return infer_scheme(tags for tags in split if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags))


def _languages(name: str, columns: Mapping[str, str], sample: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The two languages of {"translation": {"en": …, "de": …}}, in their order."""
    first = next((row.get(columns["translation"]) for row in sample), None)
    languages = list(first) if isinstance(first, dict) else []
    if len(languages) != 2 and not {"source", "target"} <= set(columns):
        what = f"there are {len(languages)} languages in the first row ({', '.join(languages)})"
        fix = "Say which: --columns source=en,target=de."
        raise DataError(what, file=name, column=columns["translation"], expected="two", fix=fix)
    rest = [one for one in languages if one not in columns.values()]
    return {role: columns[role] if role in columns else rest.pop(0) for role in ("source", "target")}
