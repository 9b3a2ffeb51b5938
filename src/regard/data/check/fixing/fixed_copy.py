"""A fixed copy of the data: what can be fixed safely is, the rest stays as it is, and everything is counted.

Safe is what loses nothing a person has meant: damage of encodings, spaces at the edges of labels and entities, an
answer that stands in one place only, an entity that was not opened, and rows that are empty or there twice. A label
that is nearly another is left: whether it is a slip is for a person to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from regard.data.atomic import atomic_path
from regard.data.check.finding import where
from regard.data.check.fixing.row_fixes import fixed_row
from regard.data.check.fixing.row_writers import fitting, styles, writer, written_columns, written_format
from regard.data.check.fixing.streams import Cleaned
from regard.data.check.fixing.verify import RowHashes, difference, refuse
from regard.data.check.row_store import stable_hash
from regard.data.check.rules.checked_row import checked_row
from regard.data.locate import DataLocation
from regard.data.readers import Reader, read, read_rows, rows_of
from regard.data.records import Place, Record
from regard.data.rows import ExcludedRow, Row
from regard.data.schema import Schema
from regard.data.sources import Source
from regard.errors import DataError
from regard.foreign import file_errors

NAMED = 20  # rows left out that are named; the rest are counted


@dataclass(frozen=True)
class FixedCopy:
    """What was changed, how often each; and the rows that could not be fixed and are left out."""

    file: str
    rows: int
    changes: Mapping[str, int]
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def write_fixed_copy(data: DataLocation, out: str | Path, **told: Any) -> FixedCopy:
    """Write the fixed copy whole or not at all. Two aligned files become one table, SQuAD becomes JSON lines.

    The copy is read again before it is kept, and compared with what it should hold; a DataError says where it differs.
    """
    reader = read(data, on_bad=lambda error: None, **told)
    target = Path(out)
    format = written_format(target.suffix.lower(), reader.schema)
    wrong: str | None = None
    with atomic_path(target) as fresh:
        for style in styles(format):
            job = _Job(reader, format)
            _write(job, fresh, style)
            wrong = job.difference(fresh, target)
            if wrong is None:
                return FixedCopy(str(target), job.rows, dict(job.changes.most_common()), tuple(job.named()))
        raise refuse(target, wrong or "", format)


def _write(job: _Job, fresh: Path, style: str) -> None:
    with writer(fresh, job.format, job.reader.schema, style) as write:
        for values, record in job:
            job.digests.add(record, write(values))


class _Job:
    """Rows of all files, fixed; what happened to them is counted on the way."""

    def __init__(self, reader: Reader, format: str) -> None:
        self.reader, self.format = reader, format
        self.digests = RowHashes(reader.schema.columns)
        self.changes: Counter[str] = Counter()
        self.left_out: list[str] = []
        self.missing, self.rows = 0, 0
        self.seen: set[int] = set()

    def difference(self, fresh: Path, target: Path) -> str | None:
        """What the copy does not hold as it should; nothing is asked of one without rows."""
        if self.rows == 0:
            return None
        return difference(fresh, target, self.reader.schema, self.reader.options, self.format, self.digests)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Record]]:
        for sources, found in self.reader.parts():
            make = found.parser()
            for row in self._rows(sources, found):
                values = self._fitting(fixed_row(row.values, found, self.changes))
                try:
                    record = make(Row(row.place, values, ""))
                except DataError as error:
                    self._bad(error, "")
                    continue
                except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
                    self._bad(row.place.error(f"cannot be used: {type(error).__name__}"), "")
                    continue
                one = checked_row(record, "")
                if not all(text.strip() for _, text in one.texts):
                    self.changes["empty rows left out"] += 1
                    continue
                if _header(values, found):
                    self.changes["headers among the rows left out"] += 1
                    continue
                key = stable_hash(f"{one.input_text}\x1f{one.annotation}")
                if key in self.seen and found.format not in ("text", "conll"):
                    self.changes["rows that were there twice left out"] += 1
                    continue
                self.seen.add(key)
                self.rows += 1
                yield self._named(values, found), record

    def _named(self, values: dict[str, Any], found: Schema) -> dict[str, Any]:
        """With the names of columns in the copy."""
        columns = written_columns(self.format, found)
        if columns == found.columns:
            return values
        named = {name: values.get(found.columns[role]) for role, name in columns.items()}
        return {name: value for name, value in named.items() if value is not None}

    def _fitting(self, values: dict[str, Any]) -> dict[str, Any]:
        fit = fitting(values, self.format, self.reader.schema)
        if fit != values:
            self.changes["line breaks inside of texts replaced by spaces"] += 1
        return fit

    def _rows(self, sources: tuple[Source, ...], found: Schema) -> Iterator[Row]:
        with file_errors(sources[0].name, DataError):
            yield from self._plain_rows(sources, found)

    def _plain_rows(self, sources: tuple[Source, ...], found: Schema) -> Iterator[Row]:
        if len(sources) == 2:
            yield from rows_of(sources, found, self._bad)
            return
        with sources[0].open() as stream:
            plain = stream if found.format == "parquet" else Cleaned(stream, found.format, self.changes)
            yield from read_rows(cast("BinaryIO", plain), sources[0].name, found, self._bad)

    def _bad(self, error: DataError, raw: str) -> None:
        if isinstance(error, ExcludedRow):
            self.changes[f"rows left out: {error.message}"] += 1
            return
        self.missing += 1
        if len(self.left_out) < NAMED:
            place = Place(error.file or "", error.line, error.row)
            self.left_out.append(f"{where(place)}: {error.message}")

    def named(self) -> Iterator[str]:
        yield from self.left_out
        if self.missing > len(self.left_out):
            yield f"and {self.missing - len(self.left_out):,} more"


def _header(values: Mapping[str, Any], found: Schema) -> bool:
    used = list(found.columns.values())
    table = found.header and found.format in ("csv", "tsv") and len(used) > 1
    return table and all(values.get(name) == name for name in used)
