"""Parquet, some rows at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from regard.data.records import Place
from regard.data.rows import Bad, Row, check_strings
from regard.errors import DataError

MAGIC = b"PAR1"
ROWS = 1024


def rows(stream: BinaryIO, name: str, bad: Bad) -> Iterator[Row]:
    """The rows by the names of their columns. A packed or piped file is laid down on disk first, for it is read from
    its end."""
    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryFile() as copy:
        file: BinaryIO = stream
        if not hasattr(stream, "fileno") or not stream.seekable() or not _plain(stream):
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            file = copy
        number = 0
        try:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=ROWS):
                for values in batch.to_pylist():
                    number += 1
                    place = Place(name, None, number)
                    try:
                        check_strings(values, place, "")
                    except DataError as error:
                        bad(error, str(values))
                        continue
                    yield Row(place, values, "")
        except (pyarrow.ArrowException, UnicodeDecodeError) as error:
            what = f"is no Parquet file that can be read: {str(error).rstrip('.')}"
            raise DataError(what, file=name, row=number + 1, mend="Was it copied whole?") from error


def _plain(stream: BinaryIO) -> bool:
    """Whether these are the bytes of the file itself, so that going back in them costs nothing."""
    here = stream.tell()
    start = stream.read(len(MAGIC))
    stream.seek(here)
    return start == MAGIC and type(stream).__module__ == "_io"
