"""Write rows to a file, in their original format if it can be written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from regard.data.formats.registry import formats
from regard.data.formats.row_writers import WriteRow, is_quoted
from regard.data.schema.schema import Schema
from regard.errors import InputError

FORMAT_NAMES = {"conll": "CoNLL", "text": "plain text", "lines": "plain text"}
SUFFIX_HINTS = {"conll": ".conll or .jsonl", "text": ".txt", "lines": ".txt"}
DEFAULT_FORMATS = {"json": "jsonl", "aligned": "tsv", "rows": "jsonl"}  # for data whose own format is not written
LINE_BREAKS = re.compile(r"[\t\r\n]+")
BLANK_LINES = re.compile(r"\n\s*\n")


def written_format(suffix: str, schema: Schema) -> str:
    """The format of the copy: by the suffix of its name (tables, Parquet, JSON lines), else that of the data.

    Raises InputError if the rows cannot be written in that format.
    """
    default = DEFAULT_FORMATS.get(schema.format, schema.format)
    if suffix in (".xlsx", ".xlsm"):
        raise InputError("the copy cannot be written as an Excel workbook. Use a file name that ends in .csv.")
    if default == "conll" and suffix == ".jsonl":
        return "jsonl"
    by_suffix = next((one for one in formats().values() if suffix in one.suffixes), None)
    if by_suffix is None or by_suffix.name in FORMAT_NAMES or (by_suffix.name, default) == ("json", "jsonl"):
        chosen = formats()[default]
    else:
        chosen = by_suffix
    if default in FORMAT_NAMES and chosen.name != default:
        raise InputError(
            f"{FORMAT_NAMES[default]} cannot be written as {suffix}. "
            f"Use a file name that ends in {SUFFIX_HINTS[default]}."
        )
    if chosen.write is None:
        raise InputError(
            f"files of the format {chosen.name} cannot be written. "
            "Use a file name that ends in .csv, .tsv, .jsonl or .parquet."
        )
    return chosen.name


def written_columns(format: str, schema: Schema) -> Mapping[str, str]:
    """Column names in the copy, by role. Columns of CoNLL, which are numbered, get names in JSON."""
    if (schema.format, format) == ("conll", "jsonl"):
        return {role: role for role in schema.columns}
    return schema.columns


def written_styles(format: str) -> tuple[str, ...]:
    """Ways to write a format: the default, and if that may be ambiguous a second one that is not."""
    return formats()[format].write_styles


def fit_format(row: dict[str, Any], format: str, schema: Schema) -> dict[str, Any]:
    """The row with line breaks replaced by spaces if the format cannot represent them."""
    if format == "text":
        return row | {"text": BLANK_LINES.sub("\n", row["text"]).strip("\r\n")}
    if format == "lines" or (format == "tsv" and not is_quoted(format, schema)):
        return {name: _on_one_line(value) if isinstance(value, str) else value for name, value in row.items()}
    return row


def _on_one_line(value: str) -> str:
    if not LINE_BREAKS.search(value):
        return value
    return LINE_BREAKS.sub(" ", value.strip("\t\r\n"))


def open_writer(path: Path, format: str, schema: Schema, style: str) -> AbstractContextManager[WriteRow]:
    """A function that writes one row to the file."""
    opened = formats()[format].write
    assert opened is not None, "`written_format` only returns formats that can be written"
    return opened(path, schema, style)
