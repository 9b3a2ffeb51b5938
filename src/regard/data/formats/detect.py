"""The format of a file, from its first bytes and the end of its name."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Sequence

from regard.data.formats import conll
from regard.data.formats import delimited as tables
from regard.data.formats import plain_text as texts
from regard.data.formats.lines import BOM
from regard.data.names import is_header
from regard.data.sources import EXCEL, FIRST_READ, holds_splits, looks_nested, too_many_parts
from regard.data.tags import TAG
from regard.errors import DataError

PARQUET = b"PAR1"
ARCHIVES = {
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "Unpack it; name a spreadsheet .xlsx, or save the sheet as CSV."),
    b"BZh": ("packed with bzip2", "Unpack it: bunzip2."),
    b"\x28\xb5\x2f\xfd": ("packed with zstd", "Unpack it: unzstd."),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "Unpack it: 7z x."),
    b"%PDF": ("a PDF", "Take its text out first: pdftotext."),
    b"SQLite format 3": ("a database", "Export the table as CSV."),
    b"ARROW1": ("an Arrow file", "Save it as Parquet."),
}
CONTROL = bytes({*range(32)} - {9, 10, 12, 13, 27})
LONGEST_HEADER = 1 << 16  # characters; a first line beyond that names no columns
TAGGED = (".conll", ".conllu", ".iob", ".bio")
QUOTED = re.compile(r'"(?:[^"]|"")*"', re.DOTALL)


def check_text(head: bytes, name: str) -> None:
    """Words about a file that is neither Parquet nor text."""
    if head.startswith(PARQUET):
        return
    for magic, (what, fix) in ARCHIVES.items():
        if head.startswith(magic):
            raise DataError(f"is {what}", file=name, expected="CSV, TSV, JSONL, Parquet or text", fix=fix)
    odd = len(head) - len(head.translate(None, CONTROL))
    if odd > 0.02 * len(head) + 1 and (b"\0" in head or not _utf8(head)):
        what = f"is a binary file: {odd} of its first {len(head)} bytes are control characters"
        fix = "If it is text in another encoding, name that: --encoding NAME (encoding= in Python)."
        raise DataError(what, file=name, expected="CSV, TSV, JSONL, Parquet or text", fix=fix)


def _utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return False
    return True


def whole_lines(head: bytes) -> str:
    """The first lines, without one that may go on after what was read."""
    if len(head) >= FIRST_READ and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
    return head.removeprefix(BOM).decode("utf-8", "replace")


def format_of(head: bytes, suffix: str) -> tuple[str, str]:
    """The format, and the reason for it."""
    if head.startswith(PARQUET):
        return "parquet", "it begins with PAR1"
    if suffix in EXCEL:
        return "csv", "it is a sheet of a spreadsheet"
    text = whole_lines(head)
    if named_delimiter(text) is not None and suffix not in TAGGED:
        return "csv", "the first line says what separates the columns"
    found = _json(head, text, suffix) or _conll(text, suffix) or _trec(text, suffix)
    if found is not None:
        return found
    if suffix in (".csv", ".tsv", ".tab"):
        return "csv" if suffix == ".csv" else "tsv", f"the name ends in {suffix}"
    lines = [line for line in text.split("\n") if line.strip()]
    tabs = {line.count("\t") for line in lines}
    if len(tabs) == 1 and tabs != {0}:
        return "tsv", "every line has as many tabs"
    first = _first_cells(lines[0]) if lines and len(lines[0]) < LONGEST_HEADER else []
    if len(first) > 1 and is_header(first, {}):
        return "csv", "the first line names columns"
    return "text", "it is neither a table, nor JSON, nor tagged words"


def _first_cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r")], delimiter=delimiter_of("csv", line.replace("\t", ""))), [])
    except csv.Error:  # such as a carriage return inside the line
        return []


def _json(head: bytes, text: str, suffix: str) -> tuple[str, str] | None:
    first, _, rest = text.lstrip().partition("\n")
    if suffix not in (".jsonl", ".ndjson") and holds_splits(head):
        return "json", "it is one JSON object with a list for each split"
    if first.startswith("{"):
        try:
            value = None if too_many_parts(first) else json.loads(first)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and (rest.strip() or not isinstance(value.get("data"), list)):
            return "jsonl", "the first line is a JSON object"
    if suffix not in (".jsonl", ".ndjson") and looks_nested(head):
        return "json", "it is one JSON value with rows inside"
    if suffix in (".jsonl", ".ndjson", ".json") or first.startswith('{"'):
        return "json" if suffix == ".json" else "jsonl", f"the name ends in {suffix}" if suffix else "it begins as JSON"
    return None


def _conll(text: str, suffix: str) -> tuple[str, str] | None:
    """Words with their tags: as many columns on every line, tags in the last, blank lines between sentences."""
    if suffix in TAGGED:
        return "conll", f"the name ends in {suffix}"
    lines = text.split("\n")
    if any(len(line) > LONGEST_HEADER for line in lines):  # no word with its tags, and splitting it takes gigabytes
        return None
    written = [line.removesuffix("\r") for line in lines if line.strip()]
    words = [conll.fields(line, tabs="\t" in line) for line in written if not line.startswith(("# ", conll.DOCUMENT))]
    blank = any(not line.strip() for line in lines[:-1])
    if suffix == ".csv" or not words or (suffix in (".tsv", ".tab") and not blank):
        return None
    if len({len(found) for found in words}) > 1 or len(words[0]) < 2:
        return None
    if all(TAG.fullmatch(found[-1]) for found in words):
        return "conll", "every line is a word with its columns, the last a tag"
    return None


def _trec(text: str, suffix: str) -> tuple[str, str] | None:
    """Lines of TREC's question classification: LABEL:sub text."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if suffix in (".csv", ".tsv", ".tab") or (len(lines) < 3 and suffix != ".label"):
        return None
    if not all(texts.TREC.fullmatch(line) for line in lines):
        return None
    return "trec", "every line is LABEL:sub and a text"


def named_delimiter(text: str) -> str | None:
    """What a first line sep=; of Excel says."""
    found = tables.SEPARATOR.fullmatch(text.partition("\n")[0])
    return None if found is None else found.group(1)


def delimiter_of(format: str, text: str) -> str:
    """What parts the columns, by the first line."""
    if format == "tsv":
        return "\t"
    named = named_delimiter(text)
    if named is not None:
        return named
    first = QUOTED.sub("", text.lstrip("\r\n").partition("\n")[0])
    return max(",;\t", key=first.count)


def quoted(text: str, delimiter: str) -> bool:
    """Whether double quotes in a TSV enclose values, or are mere characters as in GLUE.

    They enclose where every value that begins with one is well enclosed, and some could not do without: they hold a
    tab, a line end or a doubled quote, or whole rows are enclosed.
    """
    if '"' not in text:
        return False
    needed = False
    at, end = 0, len(text)
    while at < end:
        stop = _cell_end(text, at, delimiter)
        if text[at] == '"':
            match = QUOTED.match(text, at)
            if match is None:
                return needed and text.count('"', at) == 1  # the last row of the sample may be cut
            inner, stop = match.group()[1:-1], match.end()
            if stop < end and text[stop] not in (delimiter, "\n", "\r"):
                return False
            needed |= '""' in inner or delimiter in inner or "\n" in inner or "\r" in inner
        at = stop + 1
    return needed or _all_enclosed(text.split("\n", 1)[0].rstrip("\r").split(delimiter))


def _cell_end(text: str, at: int, delimiter: str) -> int:
    found = [stop for stop in (text.find(delimiter, at), text.find("\n", at)) if stop >= 0]
    return min(found, default=len(text))


def _all_enclosed(cells: Sequence[str]) -> bool:
    return all(QUOTED.fullmatch(cell) for cell in cells)
