"""Parquet, read in groups of rows."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from regard.data.formats.binary_files import PARQUET_MAGIC
from regard.data.formats.format import FileStart, Format
from regard.data.formats.lines import check_strings
from regard.data.formats.row_writers import open_parquet
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema.schema import Schema
from regard.errors import DataError, RegardError, shorten
from regard.text.decompress import ALWAYS_ALLOWED, MAX_RATIO

ROWS = 256  # at once; with texts of a megabyte each, some hundred megabytes


def rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """The rows by column name. A compressed or piped file is copied to disk first, as Parquet is read from its end."""
    with tempfile.TemporaryFile() as copy:
        file: BinaryIO = stream
        if not isinstance(getattr(stream, "raw", None), io.FileIO):
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            file = copy
        number = 0
        for number, values in enumerate(_values(file, name), 1):
            place = Place(name, None, number)
            try:
                check_strings(values, place, "")
            except DataError as error:
                on_bad(error, shorten(str(values)))
                continue
            yield Row(place, values, "")


def _values(file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """One dictionary per row. pyarrow raises many types, OSError and ValueError among them, for damaged files."""
    import pyarrow.parquet

    number = 0
    try:
        table = pyarrow.parquet.ParquetFile(file)
        _check_sizes(table.metadata, name)
        for batch in table.iter_batches(batch_size=ROWS):
            for values in batch.to_pylist():
                number += 1
                yield values
    except (RegardError, MemoryError):
        raise
    except Exception as error:
        what = f"is no Parquet file that can be read: {shorten(str(error)).rstrip('.')}"
        raise DataError(what, file=name, row=number + 1, fix="Was it copied whole?") from error


def _check_sizes(about: Any, name: str) -> None:
    """Reject columns with an implausible compression ratio, by the sizes in the metadata."""
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            column = about.row_group(group).column(number)
            size = column.total_uncompressed_size
            if size > ALWAYS_ALLOWED and size > MAX_RATIO * max(column.total_compressed_size, 1):
                raise DataError(
                    f"unpacks to more than {MAX_RATIO} times its size (column {shorten(column.path_in_schema, 60)}: "
                    f"{size:,} bytes from {column.total_compressed_size:,})",
                    file=name,
                    fix="If this is meant, save it as JSON lines.",
                )


def _sniff(start: FileStart) -> str | None:
    return "it begins with PAR1" if start.head.startswith(PARQUET_MAGIC) else None


PARQUET = Format("parquet", suffixes=(".parquet",), sniff=_sniff, rows=rows, write=open_parquet, whole_file=True)
