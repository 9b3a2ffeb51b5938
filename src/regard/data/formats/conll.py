"""CoNLL: one word with its columns per line, and a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from regard.data.formats.format import FileStart, Format, Sample
from regard.data.formats.lines import read_lines, strip_line_end
from regard.data.formats.row_writers import open_sentences
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema.columns import assign_columns
from regard.data.schema.schema import ReadOptions, Schema
from regard.data.tags import TAG, infer_scheme
from regard.errors import DataError, pluralize

BLANKS = re.compile(r"[ \t]+")
COMMENT = re.compile(r"#\s*(sent_id|text|newdoc|newpar|id|global\.columns)\b")
DOCUMENT = "-DOCSTART-"
SUFFIXES = (".conll", ".conllu", ".iob", ".bio")
MAX_LINE = 1 << 16  # characters; a longer line is not a word with its tags


def fields(line: str, *, tabs: bool) -> list[str]:
    """The columns of a line; one space between two columns is the usual case, and the fast one."""
    if tabs:
        return line.split("\t")
    columns = line.split(" ")
    return BLANKS.split(line.strip(" \t")) if "" in columns or "\t" in line else columns


def rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """One row per sentence: each column, named by its number from 0, is a list; "line" has the line of each word.

    A line that opens a document (-DOCSTART-) ends a sentence too; comments are no words, but "# newdoc" opens a
    document. A sentence with a bad line is bad as a whole.
    """
    width, tabs = 0, False
    words: list[list[str]] = []
    numbers: list[int] = []
    raw: list[str] = []
    error: DataError | None = None
    documents = 0
    for number, line in _ended(read_lines(stream, name, on_bad)):
        text = strip_line_end(line)
        if text and not text.isspace() and not (DOCUMENT in text and _opens_document(text)):
            tabs = "\t" in text if not width else tabs
            columns_of_line = fields(text, tabs=tabs)
            if not words and text.startswith("#") and _comment(text, tabs=tabs):
                documents += text.lstrip("# ").startswith("newdoc")
                continue
            width = width or len(columns_of_line)
            if len(columns_of_line) != width and error is None:
                message = f"the line has {pluralize(len(columns_of_line), 'column')} ({text:.60})"
                expected = f"{width}, as on the first line"
                error = DataError(message, file=name, line=number, expected=expected, kind="wrong-columns")
            words.append(columns_of_line)
            numbers.append(number)
            raw.append(line)
            continue
        if error is not None:
            on_bad(error, "".join(raw))
        elif words:
            columns = {str(place): list(column) for place, column in enumerate(zip(*words, strict=True))}
            document = str(documents) if documents else None
            yield Row(Place(name, numbers[0]), {**columns, "line": numbers}, "".join(raw), document)
        words, numbers, raw, error = [], [], [], None
        if text.strip():  # -DOCSTART-
            documents += 1


def _opens_document(text: str) -> bool:
    return fields(text, tabs="\t" in text)[0] == DOCUMENT


def _ended(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, and a blank one that ends the last sentence."""
    yield from lines
    yield 0, ""


def _comment(text: str, *, tabs: bool) -> bool:
    return COMMENT.match(text) is not None or (tabs and "\t" not in text)


# Detection and schema


def _sniff(start: FileStart) -> str | None:
    """By suffix; or if every line has the same number of columns, the last a tag, and blank lines end sentences."""
    if start.suffix in SUFFIXES:
        return f"the name ends in {start.suffix}"
    lines = start.text.split("\n")
    if any(len(line) > MAX_LINE for line in lines):  # splitting it would take gigabytes
        return None
    words = [line.removesuffix("\r") for line in lines if line.strip() and not line.startswith(("# ", DOCUMENT))]
    columns = [fields(line, tabs="\t" in line) for line in words]
    has_blank_line = any(not line.strip() for line in lines[:-1])
    if start.suffix == ".csv" or not columns or (start.suffix in (".tsv", ".tab") and not has_blank_line):
        return None
    if len({len(word) for word in columns}) > 1 or len(columns[0]) < 2:
        return None
    if all(TAG.fullmatch(word[-1]) for word in columns):
        return "every line is a word and its columns, the last of them a tag"
    return None


def _infer(sample: Sample, schema: Schema, options: ReadOptions) -> Schema:
    """The first column is the word and the last one its tag, unless the user has named others."""
    rows = sample.first_rows(schema)
    if not rows:
        raise DataError("has no readable sentence", file=sample.name, expected="a word and its tag on each line")
    names = [column for column in rows[0] if column != "line"]
    if options.task not in (None, "tag"):
        raise DataError("contains tagged words (task tag)", file=sample.name, expected=f"data for {options.task}")
    if len(names) < 2:
        raise DataError("has one column", file=sample.name, expected="a word and its tag on each line")
    roles = {"tokens": "0", "tags": names[-1], **options.columns}
    _, columns = assign_columns(names, roles, "tag", sample.name)
    scheme = options.scheme or infer_scheme(row[columns["tags"]] for row in rows)
    reason = f"{schema.reason}; tags are {scheme}"
    return replace(schema, task="tag", columns=columns, scheme=scheme, reason=reason)


CONLL = Format(
    "conll",
    suffixes=SUFFIXES,
    sniff=_sniff,
    rows=rows,
    infer=_infer,
    write=open_sentences,
    write_styles=("default", "tabs"),
)
