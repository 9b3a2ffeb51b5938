"""The rows of a file that a model predicts on: the input of its task, and all columns of the row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.formats.registry import table_suffixes
from regard.data.readers import Reader
from regard.data.records import AnswerRecord, DocumentRecord, Record, TagRecord, column_aliases
from regard.data.rows import MAX_LINE_BYTES, Row
from regard.data.schema.columns import Columns
from regard.data.schema.options import read_options
from regard.data.schema.schema import Schema
from regard.data.sources.locate import find_sources
from regard.data.sources.sources import suffix_of
from regard.errors import DataError, InputError
from regard.predict.batch.read_options import Sources, TrainingReadOptions, has_columns
from regard.text.file_encodings import parse_encoding

TABLES = ("csv", "tsv", "jsonl")  # formats that a text file may have by any name
UNNAMED = ("text", "lines", "conll")  # formats whose columns have no names of their own


@dataclass(frozen=True)
class InputRow:
    """What `Model.predict` takes, and the columns of its row as they were read."""

    item: Any
    columns: dict[str, Any]


def input_roles(task: str | None) -> tuple[str, ...]:
    """The texts that an input of the task has, by column role; one text for a network without a task."""
    from regard.tasks import TASKS

    return TASKS[task].input_roles if task in TASKS else ("text",)


def takes_tokens(task: str | None) -> bool:
    """Whether an input of the task may be a list of tokens."""
    from regard.tasks import TASKS

    return task in TASKS and TASKS[task].record is TagRecord


def text_rows(texts: Sequence[str], task: str | None, *, context: str | None = None) -> Iterator[InputRow]:
    """Texts that were given one after the other: two by two for a task that takes two, unless the context is given."""
    if context is not None:
        yield from (InputRow((question, context), {"question": question}) for question in texts)
    elif len(input_roles(task)) == 2:
        for pair in zip(texts[::2], texts[1::2], strict=True):
            yield InputRow(pair, dict(zip(input_roles(task), pair, strict=True)))
    else:
        yield from (InputRow(text, {"text": text}) for text in texts)


def file_rows(
    name: str,
    task: str | None,
    *,
    columns: Columns | None = None,
    format: str | None = None,
    encoding: str | None = None,
    read_options: TrainingReadOptions | None = None,
    context: str | None = None,
) -> Iterator[InputRow]:
    """What a file holds for a task, row by row. Labels are not used; they are copied like all columns.

    columns: which column is what; if not given, those of `read_options` from the training, where the file has them.
    format: such as "csv"; if not given, tables are recognized by their names, and other files have a text per line.
    context: for a task that answers questions, the text that all questions of the file are about.
    """
    sources = find_sources(name)
    known = read_options or TrainingReadOptions()
    opened = _Opened(name, sources, columns or {}, known, format, encoding or known.encoding_of(sources))
    if format is None and is_plain(name, columns):
        warn_of_table(sources, encoding=opened.encoding)
    reader = opened.questions() if context is not None else opened.rows(task)
    for row, record in reader.with_rows():
        columns_of_row = row_columns(row, reader.schema)
        if context is None:
            yield InputRow(record, columns_of_row)
            continue
        question = _question(record, context)
        yield InputRow(question, {"question": question.question} if reader.schema.format in UNNAMED else columns_of_row)


@dataclass(frozen=True)
class _Opened:
    """A file, and what is known of its columns."""

    name: str
    sources: Sources
    columns: Columns
    read_options: TrainingReadOptions
    format: str | None
    encoding: str | None

    def rows(self, task: str | None) -> Reader:
        """A reader of what the task takes."""
        roles = input_roles(task)
        if len(roles) == 2:
            labels = None if "context" in roles else "class"
            return self._reader(self._choices(roles), task=task, labels=labels)
        plain = is_plain(self.name, self.columns, self.format)
        tagged = self._tagged(plain=plain) if takes_tokens(task) and self.name != "-" else None
        if tagged is not None:
            return tagged
        return self._lines() if plain else self._reader(self._text_choices(), task="text")

    def questions(self) -> Reader:
        """Questions alone: a column of a table, or one per line."""
        if "context" in self.columns:
            raise InputError("a context was given, and a column for it too. Leave one of them out.")
        if is_plain(self.name, self.columns, self.format):
            return self._lines()
        named = self.columns.get("question", self.columns.get("text"))
        if named is not None:
            return self._reader([{"text": named}], task="text")
        known = self.read_options.columns.get("question")
        names = [name for lower in column_aliases()["question"] for name in (lower, lower.title(), lower.upper())]
        choices = [{"text": name} for name in (*([known] if known else []), *names)]
        return self._reader([*choices, {}], task="text")

    def _lines(self) -> Reader:
        return Reader(self.sources, read_options(task="text", format="lines", encoding=self.encoding))

    def _tagged(self, *, plain: bool) -> Reader | None:
        """Words with or without their tags, or texts of documents; a file that is no table only as CoNLL.

        Of an annotation tool every text is wanted, accepted or not, so those are read as texts.
        """
        try:
            if plain and Reader(self.sources, read_options(encoding=self.encoding)).schema.format != "conll":
                return None
            schema = self._reader(self._choices(("tokens", "text", "document")), task="tag")
        except DataError:  # no words; a text will do
            return None
        return None if schema.schema.export else schema

    def _choices(self, roles: Sequence[str]) -> list[Columns]:
        """The columns to try, one choice after the other."""
        if self.columns:
            return [self.columns]
        known = {role: name for role, name in self.read_options.columns.items() if role in roles}
        return [known, {}] if known else [{}]

    def _text_choices(self) -> list[Columns]:
        """The same where one text is wanted: of a translator, the source."""
        if self.columns:
            return [self.columns]
        named = self.read_options.columns.get("text", self.read_options.columns.get("source"))
        return [{}] if named is None else [{"text": named}, {}]

    def _reader(self, choices: Sequence[Columns], **options: Any) -> Reader:
        """A reader with the first choice of columns that the file has; the last choice says what is wrong."""
        options |= {"format": self.format, "encoding": self.encoding}
        for choice in choices[:-1]:
            if has_columns(self.sources, choice, **options):
                return Reader(self.sources, read_options(columns=choice, **options))
        return Reader(self.sources, read_options(columns=choices[-1], **options))


def is_plain(name: str, columns: Columns | str | None, format: str | None = None) -> bool:
    """Whether a file is read one text per line: it is no table, and neither its format nor a column was named."""
    if format is not None:
        return format == "lines"
    path = Path(name.partition("#")[0])
    return not columns and not Path(name).expanduser().is_dir() and suffix_of(path) not in table_suffixes()


def warn_of_table(sources: Sources, *, encoding: str | None = None) -> None:
    """Warn if a file that is read one text per line seems to be a table. What is read of stdin here is read again."""
    try:
        schema = Reader(sources, read_options(encoding=encoding)).schema
    except DataError:
        return
    source = sources[0][0]
    format, looks, names = schema.format, "", column_aliases()["text"]
    if format in TABLES and schema.header and "text" in schema.columns:
        looks = f"{format} with the columns {', '.join([*schema.columns.values(), *schema.unused]):.80}"
    elif format == "tsv":
        looks = f"tsv with {len(schema.columns) + len(schema.unused)} columns"
    elif format == "text" and source.head().split(b"\n", 1)[0].decode("utf-8", "replace").strip().lower() in names:
        format, looks = "csv", "csv with one column, whose name is in the first line"
    if looks:
        words = f"{source.name} is read one text per line, but looks like {looks}"
        warnings.warn(f"{words}; use --format {format} to read it as a table.", UserWarning, stacklevel=3)


def read_context(name: str, *, encoding: str | None = None) -> str:
    """The text of a file, or of stdin (`-`), that questions are about."""
    groups = find_sources(name)
    if len(groups) != 1 or len(groups[0]) != 1:
        raise InputError(f"{name} is more than one file; expected one file with the context.")
    source = groups[0][0]
    source.encoding = None if encoding is None else parse_encoding(encoding)
    with source.open() as stream:
        content = stream.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES:
        raise DataError(f"is longer than {MAX_LINE_BYTES >> 20} MB", file=source.name, expected="one text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} (0x{content[error.start]:02X}) is not UTF-8"
        raise DataError(what, file=source.name, expected="text in UTF-8") from error
    if not text.strip():
        raise DataError("is empty", file=source.name, expected="the text that the questions are about")
    return text


def row_columns(row: Row, schema: Schema) -> dict[str, Any]:
    """The columns of a row; those without names are called by what they are."""
    values = {name: value for name, value in row.values.items() if not (schema.format == "conll" and name == "line")}
    if schema.format == "text":
        values.pop("continues", None)
    if schema.header and schema.format not in UNNAMED:
        return values
    roles = {name: role for role, name in schema.columns.items()}
    return {roles.get(name, name): value for name, value in values.items()}


def _question(record: Record, context: str) -> AnswerRecord:
    assert isinstance(record, DocumentRecord)
    return AnswerRecord(str(record.place.line or record.place.row), context, record.text, place=record.place)
