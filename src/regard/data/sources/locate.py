"""Find the sources of a dataset: one file or several, a folder with splits, a glob, two aligned files, or stdin."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from regard.data.formats.excel import EXCEL_SUFFIXES
from regard.data.formats.registry import known_suffixes
from regard.data.sources.memory import SPLITS, MemorySource, in_memory
from regard.data.sources.sources import Source, suffix_of
from regard.errors import DataError, did_you_mean

DataLocation = str | Path | Sequence[str | Path] | Any  # or rows in memory: see `regard.data.sources.memory`


def find_sources(where: DataLocation, *, split: str | None = None) -> list[tuple[Source, ...]]:
    """The sources to read in order; a tuple of two has aligned lines."""
    if in_memory(where):
        return [(MemorySource(where, split),)]
    if isinstance(where, tuple):
        if len(where) != 2:
            raise DataError(f"{len(where)} aligned files were given", expected="two, such as (a.en, a.de)")
        return [(Source(_file(where[0])), Source(_file(where[1])))]
    if not isinstance(where, str | Path):
        if not isinstance(where, Sequence) or isinstance(where, bytes):
            what = f"the data is {where!r:.60} ({type(where).__name__})"
            fix = "Call collect() first." if hasattr(where, "collect") else None  # a lazy frame
            raise DataError(what, expected="a path, several, rows as dicts, a dict of columns, or a table", fix=fix)
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
            raise DataError(f'has no split "{split}"', file=str(path), fix=f"It has: {', '.join(splits)}.")
        return splits[split or next(iter(splits))]
    if path.exists():
        return [(Source(path),)]
    book, hash, sheet = name.rpartition("#")
    if hash and suffix_of(Path(book)) in EXCEL_SUFFIXES:
        return [(Source(_file(book), sheet=sheet),)]
    if any(letter in name for letter in "*?["):
        return _globbed(name)
    if name.count(",") == 1:
        return find_sources(tuple(name.split(",")), split=split)
    return [(Source(_file(path)),)]


def _file(named: str | Path) -> Path:
    path = Path(named).expanduser()
    if path.is_dir():
        raise DataError("is a folder", file=str(path), expected="a file")
    if not path.exists():
        siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        fix = did_you_mean(path.name, siblings, key=_without_suffixes).strip() if siblings else ""
        raise DataError("does not exist", file=str(path), fix=fix if fix.startswith("Did") else None)
    return path


def _without_suffixes(name: str) -> str:
    return name.partition(".")[0]


def _globbed(pattern: str) -> list[tuple[Source, ...]]:
    matches = sorted(glob.glob(str(Path(pattern).expanduser()), recursive=True))  # noqa: PTH207 (absolute patterns too)
    files = [(Source(name),) for name in matches if Path(name).is_file()]
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
    if len(paths) == 2 and not any(suffix_of(path) in known_suffixes() for path in paths):
        return [(Source(paths[0]), Source(paths[1]))]
    return [(Source(path),) for path in paths]
