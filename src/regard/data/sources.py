"""Where data comes from: a file, several, a folder with train, valid and test, a glob, two aligned files, stdin.

Compression and encoding are seen in the first bytes. A file that is cut short, or that changes while it is read, is an
error. Whatever a file is written in, what is read here is UTF-8; a sheet of a spreadsheet is read as CSV.
"""

from __future__ import annotations

import contextlib
import glob
import io
import itertools
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from regard.data.formats.excel import csv_of
from regard.errors import DataError, did_you_mean
from regard.foreign import file_errors
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed
from regard.text.file_encodings import (
    UTF8,
    EncodingGuess,
    as_utf8,
    detect_encoding,
    resolve_byte_order,
    warn_about_encoding,
)

DataLocation = str | Path | Sequence[str | Path] | Any  # or rows in memory: see `regard.data.memory`

PACKED = (".gz", ".xz")
EXCEL = (".xlsx", ".xlsm")
TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", *EXCEL, ".conll", ".conllu", ".iob", ".bio")
SUFFIXES = (*TABLES, ".txt", ".text", "")
SPLITS = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test",),
}
NESTED = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*(?=\{|\[\s*")|\{.{0,4096}?"data"\s*:\s*\[)', re.DOTALL)
INSIDE = re.compile(  # the first split of CLINC's data_full.json and the like
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:oos_)?(?:train|training|valid|validation|val|dev|test)"\s*:\s*\[(?=\s*[\[{])'
)
FIRST_READ = 1 << 18
PARTS = 4_000_000  # lists and objects in one row of JSON
LONGEST = 1 << 27  # bytes in one line, or in one field with line ends in it


class Source:
    """One stream of bytes with a name. A file can be read again and again, stdin or a pipe once.

    `encoding` is the one the user names; where it is None it is recognized, and reported. `sheet` is that of a
    spreadsheet; the first one with rows if it is None.
    """

    def __init__(self, name: str | Path, *, sheet: str | None = None, suffix: str | None = None) -> None:
        self.encoding: str | None = None
        self.sheet, self._suffix = sheet, suffix
        self.split: str | None = None  # the split to read of a file that holds several
        self._guess: EncodingGuess | None = None
        self.name = "stdin" if str(name) == "-" else str(name)
        self.path = None if str(name) == "-" else Path(name)
        self.single_pass = self.path is None or not stat.S_ISREG(self.path.stat().st_mode)
        self._replay: _Replay | None = None
        self._begun = False
        self._kept: object = None

    @property
    def suffix(self) -> str:
        """What the name ends in, compression left out."""
        if self._suffix is not None:
            return self._suffix
        return suffix_of(self.path) if self.path is not None else ""

    def head(self, size: int = FIRST_READ) -> bytes:
        """The first bytes, unpacked: at least `size` of them and two whole lines, where there are so many."""
        with self._text() as stream:
            held = stream.read(size)
            while held.count(b"\n") < 2 and len(held) < LONGEST and not _holds_item(held):
                more = stream.read(len(held))
                if not more:
                    break
                held += more
        if self._replay is not None:
            self._replay.kept.seek(0)
        if not held:
            raise DataError("is empty", file=self.name, expected="at least one row")
        return held

    def copy_to_disk(self) -> None:
        """Lay what can be read only once down in a file of its own, for formats that are read from their end."""
        if self.single_pass:
            kept = tempfile.NamedTemporaryFile()  # noqa: SIM115 (lives as long as this source)
            self._begin()
            with self._unpacked() as stream:
                shutil.copyfileobj(stream, kept)
            kept.flush()
            self._kept, self.path, self.single_pass = kept, Path(kept.name), False

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The unpacked bytes, and at their end a look whether the file is still the one that was opened."""
        if self.single_pass and self._begun:
            raise DataError("can be read only once", file=self.name, fix="Save it to a file to read it again.")
        self.detected_encoding()  # before what is read once is no longer kept
        self._begin()
        with self._text() as stream:
            yield stream

    def detected_encoding(self) -> EncodingGuess:
        """The encoding, as the user named it or as it was recognized; then it is reported, once."""
        if self._guess is None:
            with file_errors(self.name, DataError):
                self._guess = self._recognized()
            if self._replay is not None:
                self._replay.kept.seek(0)
            if self._guess.reason:
                warn_about_encoding(self.name, self._guess)
        return self._guess

    def _recognized(self) -> EncodingGuess:
        if self.encoding == UTF8:
            return EncodingGuess(UTF8, "")
        with self._unpacked() as stream:
            if self.encoding is not None:
                return EncodingGuess(resolve_byte_order(self.encoding, stream.read(FIRST_READ), self.name), "")
            first = stream.read(FIRST_READ)
            more = iter(()) if self.single_pass else iter(lambda: stream.read(FIRST_READ), b"")
            return detect_encoding(itertools.chain([first], more))

    @contextlib.contextmanager
    def _text(self) -> Iterator[BinaryIO]:
        """The bytes in UTF-8; of a spreadsheet, its sheet as CSV."""
        guess = self.detected_encoding()
        with self._unpacked() as stream, contextlib.ExitStack() as stack:
            if guess.name != UTF8:
                yield as_utf8(stream, guess.name, self.name)
            elif self.suffix in EXCEL and self.path is not None:
                yield stack.enter_context(csv_of(stream, self.name, self.sheet))
            else:
                yield stream

    def _begin(self) -> None:
        self._begun = True
        if self._replay is not None:
            self._replay.keeping = False

    @contextlib.contextmanager
    def _unpacked(self) -> Iterator[BinaryIO]:
        with contextlib.ExitStack() as stack:
            raw, before = self._raw(stack)
            try:
                yield decompressed(raw, self.name)
            except DECOMPRESSION_ERRORS as error:
                self._check_unchanged(before)
                what = f"is cut short or damaged: {str(error).rstrip('.')}"
                raise DataError(what, file=self.name, fix="Fetch or pack it again.") from error
            except DataError:
                self._check_unchanged(before)
                raise
            self._check_unchanged(before)

    def _raw(self, stack: contextlib.ExitStack) -> tuple[io.BufferedReader, os.stat_result | None]:
        if not self.single_pass and self.path is not None:
            try:
                file = stack.enter_context(self.path.open("rb"))
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", file=self.name) from error
            return file, os.fstat(file.fileno())
        if self._replay is None:
            if self.path is None and sys.stdin is None:
                raise DataError("is closed, so nothing can be read", file="standard input", fix="Name a file.")
            self._replay = _Replay(sys.stdin.buffer if self.path is None else self.path.open("rb"))
        return io.BufferedReader(self._replay, FIRST_READ), None

    def _check_unchanged(self, before: os.stat_result | None) -> None:
        if before is None or self.path is None:
            return
        after = self.path.stat() if self.path.exists() else None
        if after is None or (after.st_ino, after.st_size, after.st_mtime_ns) != (
            before.st_ino,
            before.st_size,
            before.st_mtime_ns,
        ):
            now = "it is gone" if after is None else f"{before.st_size} bytes before, {after.st_size} now"
            fix = "Wait until nobody writes to it, then read it again."
            raise DataError(f"changed while it was read ({now})", file=self.name, fix=fix)


class _Replay(io.RawIOBase):
    """A stream that cannot go back, whose beginning is kept until it has been looked at."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw, self.kept, self.keeping = raw, io.BytesIO(), True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.kept.readinto(buffer)
        if count:
            return count
        read = getattr(self.raw, "read1", self.raw.read)
        found = read(len(buffer))
        if self.keeping:
            self.kept.write(found)
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Stays open: the second reader goes on where the first has stopped."""


def looks_nested(head: bytes) -> bool:
    """Whether a file begins as one JSON value with its rows inside, such as SQuAD."""
    return NESTED.match(head) is not None


def holds_splits(head: bytes) -> bool:
    """Whether a file begins as a JSON object with a list of rows for each split, such as CLINC's."""
    return INSIDE.match(head) is not None


def split_named(key: Any) -> str | None:
    """The split that a key of such an object names; those of CLINC that are out of scope go with the others."""
    name = str(key).lower().removeprefix("oos_")
    return next((split for split, names in SPLITS.items() if name in names), None)


def too_many_parts(text: str, start: int = 0) -> bool:
    """Whether JSON has so many lists and objects that it would take gigabytes as Python's."""
    return len(text) - start > PARTS and text.count("{", start) + text.count("[", start) > PARTS


def _holds_item(head: bytes) -> bool:
    """Whether the beginning of such a file is enough to see what its rows are."""
    match = INSIDE.match(head) or NESTED.match(head)
    if match is None or b'"paragraphs"' in head:
        return match is not None
    try:
        text = head[match.end() :].decode("utf-8", "replace").lstrip()
        return too_many_parts(text) or json.JSONDecoder().raw_decode(text) is not None
    except (ValueError, RecursionError):
        return False


def suffix_of(path: Path) -> str:
    name = Path(path.stem) if path.suffix.lower() in PACKED else path
    return name.suffix.lower()


def find_sources(where: DataLocation, *, split: str | None = None) -> list[tuple[Source, ...]]:
    """The sources to read one after the other; a tuple of two holds aligned lines."""
    from regard.data.memory import MemorySource, in_memory

    if in_memory(where):
        return [(MemorySource(where, split),)]
    if isinstance(where, tuple):
        if len(where) != 2:
            raise DataError(f"{len(where)} aligned files were given", expected="two, such as (a.en, a.de)")
        return [(Source(_file(where[0])), Source(_file(where[1])))]
    if not isinstance(where, str | Path):
        if not isinstance(where, Sequence) or isinstance(where, bytes):
            what = f"the data is {where!r:.60} ({type(where).__name__})"
            raise DataError(what, expected="a path, several, rows as dicts, a dict of columns, or a table")
        if not where:
            raise DataError("no file was given", expected="at least one")
        return [sources for one in where for sources in find_sources(one, split=split)]
    name = str(where)
    if name == "-":
        return [(Source("-"),)]
    path = Path(name).expanduser()
    if path.is_dir():
        splits = split_files(path)
        if split is not None and split not in splits:
            raise DataError(f'holds no "{split}"', file=str(path), fix=f"It holds: {', '.join(splits)}.")
        return splits[split or next(iter(splits))]
    if path.exists():
        source = Source(path)
        source.split = split
        return [(source,)]
    book, hash, sheet = name.rpartition("#")
    if hash and suffix_of(Path(book)) in EXCEL:
        return [(Source(_file(book), sheet=sheet),)]
    if any(letter in name for letter in "*?["):
        return _globbed(name)
    if name.count(",") == 1:
        return find_sources(tuple(name.split(",")), split=split)
    return [(Source(_file(path)),)]


def _file(given: str | Path) -> Path:
    path = Path(given).expanduser()
    if path.is_dir():
        raise DataError("is a folder", file=str(path), expected="a file")
    if not path.exists():
        near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        fix = did_you_mean(path.name, near).strip() if near else ""
        raise DataError("does not exist", file=str(path), fix=fix if fix.startswith("Did") else None)
    return path


def _globbed(pattern: str) -> list[tuple[Source, ...]]:
    found = sorted(glob.glob(str(Path(pattern).expanduser()), recursive=True))  # noqa: PTH207 (absolute patterns too)
    files = [(Source(name),) for name in found if Path(name).is_file()]
    if not files:
        raise DataError("matches no file", file=pattern, fix='Quote it and look at what is there: ls "…".')
    return cast("list[tuple[Source, ...]]", files)


def split_files(folder: Path) -> dict[str, list[tuple[Source, ...]]]:
    """The files of a folder by the split in their names: train-v1.1.json.gz, dev.tsv, train.en with train.de."""
    named: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        words = set(re.split(r"[^a-z]+", path.name.lower()))
        split = next((split for split, names in SPLITS.items() if words & set(names)), None)
        if split is not None and path.is_file() and not path.name.startswith("."):
            named.setdefault(split, []).append(path)
    if not named:
        there = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
        raise DataError(
            f"holds no file named train, valid or test (it holds {there})",
            file=str(folder),
            fix=f'Name the file, or several with a glob such as "{folder}/*.csv".',
        )
    return {split: _aligned(named[split]) for split in SPLITS if split in named}


def _aligned(paths: list[Path]) -> list[tuple[Source, ...]]:
    """Two files that differ in their language alone are one source of pairs."""
    if len(paths) == 2 and not any(suffix_of(path) in SUFFIXES for path in paths):
        return [(Source(paths[0]), Source(paths[1]))]
    return [(Source(path),) for path in paths]
