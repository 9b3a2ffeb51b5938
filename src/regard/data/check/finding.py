"""The result of a data check: findings with suggested fixes, and statistics of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from regard.data.records import Place

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Example:
    """A row as an example of a finding; `text` is the beginning of its text."""

    file: str
    line: int | None
    row: int | None
    message: str
    text: str

    @property
    def where(self) -> str:
        return describe_place(Place(self.file, self.line, self.row))


def describe_place(place: Place) -> str:
    """Line and row of a place, without the file: "line 3, row 2"."""
    if place.line is None and place.row is None:
        return "the file"
    numbers = (("line", place.line), ("row", place.row))
    return ", ".join(f"{name} {number}" for name, number in numbers if number is not None)


@dataclass(frozen=True)
class Finding:
    """A problem in one row, or in several rows of a kind. File, line and row are those of the first.

    kind: identifier of the problem, such as "duplicate" (see `kinds`).
    severity: "error", "warning" or "note".
    fix: what to do about it.
    count: number of rows.
    split: name of the split, if the data has several.
    lines: line numbers of the first rows.
    """

    kind: str
    severity: str
    file: str | None
    line: int | None
    row: int | None
    message: str
    fix: str
    count: int = 1
    split: str | None = None
    examples: tuple[Example, ...] = ()
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Split:
    """One split of the data: train, valid, test, or "data" if there is only one."""

    name: str
    files: tuple[str, ...]
    rows: int
    bad_rows: int
    labels: Mapping[str, int]


@dataclass(frozen=True)
class Overlap:
    """Rows of one split (`second`) that also occur in an earlier one (`first`), exactly or nearly."""

    first: str
    second: str
    exact: int
    near: int
    rows: int  # in the second split


@dataclass(frozen=True)
class LengthStatistics:
    """Lengths of the rows in tokens: counted by a tokenizer, or estimated from words if there is none."""

    unit: str  # "tokens", or how they were estimated
    rows: int  # rows that were counted; a sample of large data
    total_tokens: int  # of all rows, extrapolated from those counted
    mean: float
    median: int
    p95: int
    max_length: int
    limit: int | None  # maximum tokens of the model
    fraction_over_limit: float  # fraction of the rows that are longer than the limit
    bounds: tuple[int, ...]  # edges of the histogram bins; one more than counts
    counts: tuple[int, ...]


@dataclass(frozen=True)
class TrainingEstimate:
    """Estimated time and memory of training on the rows on this machine."""

    model: str
    parameters: int
    tokens: int  # per epoch
    memory: int  # bytes
    device: str  # such as "this machine (2 CPU cores)"
    seconds: float  # of the whole training run
    epochs: float
    steps: int
    assumptions: str
    similarity_pairs: int = 0  # that similarity is learned from before the first step
    trainings: int = 1  # with so many steps each: on all rows again, or repeated
    contrastive_steps: int = 0  # that make vectors of texts with the same label similar, before a head is fitted


@dataclass(frozen=True)
class CheckReport:
    """All findings, the most severe first, and statistics of the rows.

    report.as_json() is the object printed by `regard check --json`.
    """

    rows: int
    bad_rows: int
    task: str | None
    format: str
    labels: Mapping[str, int]
    findings: tuple[Finding, ...]
    splits: tuple[Split, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)  # min, mean and max of numeric labels
    lengths: LengthStatistics | None = None
    estimate: TrainingEstimate | None = None
    encoding: str | None = None  # of the first file
    complete: bool = True  # False if a file could not be read completely
    seconds: float = 0.0

    def count(self, severity: str) -> int:
        """The number of findings of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
