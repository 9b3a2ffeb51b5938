"""Predictions in a file: the columns of the input, then those of the answers, in the format of the file name."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.checkpoint.files import model_files
from regard.data.atomic import file_errors, is_stream, real_path
from regard.data.formats.writers import json_line, output_format, table_file, write_table
from regard.errors import FolderError, RegardError
from regard.predict.batch.journal import Journal, open_journal
from regard.predict.batch.rows import InputRow
from regard.progress import OnProgress, Progress

if TYPE_CHECKING:
    from regard.predict.model import Model
    from regard.tasks.task import Answer

SMALL = 1 << 22  # bytes of a file that is read to tell one model from another; of larger ones size and time


@dataclass(frozen=True)
class Predictions:
    """What was written: `resumed` rows are from the run before, `removed` are of one that was given up."""

    rows: int
    names: dict[str, str]  # the columns of the predictions, by the fields of the answers
    resumed: int = 0
    removed: int = 0

    @property
    def renamed(self) -> dict[str, str]:
        """Columns of predictions that are not called as usual, because the input has a column of that name."""
        return {field: name for field, name in self.names.items() if field != name}


def predict_to_file(
    model: Model,
    rows: Iterable[InputRow],
    output: str | Path,
    *,
    batch_tokens: int,
    abstain: float | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    progress: OnProgress | None = None,
) -> Predictions:
    """Predict on rows and write each with its answer, in order: CSV, TSV or Parquet by the name, else JSON lines.

    A field of an answer whose name the input has as a column is called predicted_NAME. The file is there when all rows
    are. A run that was stopped goes on with `resume`, given the same model, rows and `settings`, and gives the same
    bytes as one that was not stopped. What is not a regular file receives rows as they come.
    """
    output = Path(output)
    format = output_format(output)
    work = _Work(model, batch_tokens, progress, abstain=abstain)
    settings = {**(settings or {}), **({} if abstain is None else {"abstain": abstain})}
    if is_stream(output):
        with table_file(output) as write:
            for row in work.run(iter(rows), None):
                write(row)
        return Predictions(work.rows, work.names)
    identity = {"model": model_digest(model), "settings": _plain({**settings, "batch_tokens": batch_tokens})}
    with file_errors(output), open_journal(output, identity, resume=resume) as journal:
        _fill(work, journal, iter(rows), output)
        if format == "jsonl":
            journal.put_in_place(real_path(output))
        else:
            journal.flush()
            write_table(journal.part, output, last=tuple(work.names.values()))
        return Predictions(work.rows, work.names, work.resumed, journal.removed)


def _fill(work: _Work, journal: Journal, rows: Iterator[InputRow], output: Path) -> None:
    """Write the rows that are not there yet. A chunk is answered together, so rows are complete with their chunk."""
    work.skip(rows, journal, output)
    try:
        for row in work.run(rows, journal.names):
            journal.write(json_line(row))
            if work.rows % work.chunk == 0:
                journal.mark(work.rows, work.digest.hexdigest(), work.names)
    except RegardError as error:
        if journal.rows:
            error.add(f"{journal.rows:,} rows are kept: fix this, then run the same command with --resume.")
        raise
    except BaseException as error:  # Ctrl-C too
        if journal.rows:
            error.add_note(f"{journal.rows:,} rows are kept: run the same command with --resume to go on.")
        raise


class _Work:
    """Rows answered one after the other, counted, with a digest of what went in."""

    def __init__(
        self, model: Model, batch_tokens: int, progress: OnProgress | None, *, abstain: float | None = None
    ) -> None:
        self.model, self.batch_tokens, self.progress = model, batch_tokens, progress
        self.abstain = abstain
        self.rows, self.resumed = 0, 0
        self.names: dict[str, str] = {}
        self.digest = hashlib.blake2b(digest_size=16)
        self.chunk = model.task_and_records([])[0].chunk_size

    def skip(self, rows: Iterator[InputRow], journal: Journal, output: Path) -> None:
        """Pass over the rows that are answered already, and see that they are the same."""
        for row in islice(rows, journal.rows):
            self._count(row)
        self.resumed = self.rows
        if self.rows != journal.rows or (journal.rows and self.digest.hexdigest() != journal.inputs):
            raise FolderError(
                f"{output} cannot be resumed: the first {journal.rows:,} rows of the input are not those of the run "
                "that was stopped. Give the same input, or leave --resume out to start again."
            )

    def run(self, rows: Iterator[InputRow], names: Mapping[str, str] | None) -> Iterator[dict[str, Any]]:
        """Every row with its answer as one object."""
        first_rows = list(islice(rows, self.chunk))
        columns = {name for row in first_rows for name in row.columns}
        pending: deque[InputRow] = deque()
        items = _queued(chain(first_rows, rows), pending)
        answers = self.model.answers(items, abstain=self.abstain, batch_tokens=self.batch_tokens)
        del first_rows
        for answer in answers:
            row = pending.popleft()
            if not self.names:
                self.names = dict(names) if names else answer_names(answer, columns)
            self._count(row)
            yield self._joined(row, answer)
            if self.progress is not None:
                self.progress(Progress("answers", self.rows))

    def _count(self, row: InputRow) -> None:
        self.rows += 1
        self.digest.update(json_line(row.columns).encode("utf-8", "surrogatepass"))

    def _joined(self, row: InputRow, answer: Answer) -> dict[str, Any]:
        own = {self.names.get(field, field): value for field, value in answer.json().items()}
        columns = {f"input_{name}" if name in own else name: value for name, value in row.columns.items()}
        return {**columns, **own}


def answer_names(answer: Answer, columns: set[str]) -> dict[str, str]:
    """The names of the fields of an answer in a table with these columns."""
    names = {}
    for field in answer.json():
        name = field if field not in columns else f"predicted_{field}"
        while name in columns:
            name += "_"
        names[field] = name
    return names


def _queued(rows: Iterable[InputRow], pending: deque[InputRow]) -> Iterator[Any]:
    """The items of the rows; each row is queued until it is answered."""
    for row in rows:
        pending.append(row)
        yield row.item


def model_digest(model: Model) -> str:
    """The same for the same model: small files by their content, weights by size and time of change."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((model.config, str(model.device), torch.__version__)).encode())
    digest.update(str(next(model.network.parameters()).dtype).encode())
    for path in sorted(model_files(model.folder)) if model.folder is not None else ():
        with suppress(OSError):
            status = path.stat()
            digest.update(repr((path.name, status.st_size)).encode())
            digest.update(path.read_bytes() if status.st_size <= SMALL else str(status.st_mtime_ns).encode())
    return digest.hexdigest()


def _plain(settings: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(settings, default=str))
