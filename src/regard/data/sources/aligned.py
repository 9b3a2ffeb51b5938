"""Two aligned files: line n of one is the translation of line n of the other."""

from __future__ import annotations

from regard.data.formats.binary_files import check_text
from regard.data.schema.schema import ReadOptions, Schema
from regard.data.sources.sources import Source
from regard.errors import DataError


def file_suffixes(sources: tuple[Source, ...]) -> tuple[str, str]:
    """What distinguishes two aligned files: the suffixes of their names, or their order."""
    first, second = (source.suffix.removeprefix(".") for source in sources)
    return ("0", "1") if first == second else (first, second)


def aligned_schema(sources: tuple[Source, ...], options: ReadOptions) -> Schema:
    """The schema of two files with corresponding lines; their columns are named by their suffixes."""
    if options.task not in (None, "translate") or options.format not in (None, "aligned"):
        raise DataError("two aligned files were given (task translate)", expected=f"data for {options.task}")
    for source in sources:
        check_text(source.head(), source.name)
    suffixes = file_suffixes(sources)
    columns = dict(zip(("source", "target"), suffixes, strict=True))
    for role, suffix in options.columns.items():
        if role not in columns or suffix not in suffixes:
            expected = f"source or target, {' or '.join(suffixes)}"
            raise DataError(f'there is no file for {role}="{suffix}"', expected=expected)
        other = suffixes[1 - suffixes.index(suffix)]
        columns = {"source": suffix, "target": other} if role == "source" else {"source": other, "target": suffix}
    return Schema("aligned", "translate", columns, "two files are read line by line", header=False)
