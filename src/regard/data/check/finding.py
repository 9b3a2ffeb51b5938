"""What the data doctor says: findings with their fix, and a report of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from regard.data.records import Place

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Example:
    """One row that shows a finding; `text` is its beginning."""

    file: str
    line: int | None
    row: int | None
    message: str
    text: str

    @property
    def where(self) -> str:
        return where(Place(self.file, self.line, self.row))


def where(place: Place) -> str:
    """A place as a person says it, without the file."""
    if place.line is None:
        return "the file" if place.row is None else f"row {place.row}"
    return f"line {place.line}" if place.row is None else f"line {place.line}, row {place.row}"


@dataclass(frozen=True)
class Finding:
    """Something wrong or odd, in one row or in many of a kind. The place is that of the first."""

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
    lines: tuple[int, ...] = ()  # of the first rows it was found in


@dataclass(frozen=True)
class Split:
    """One set of rows: train, valid, test, or the only one."""

    name: str
    files: tuple[str, ...]
    rows: int
    bad_rows: int
    labels: Mapping[str, int]


@dataclass(frozen=True)
class Overlap:
    """Rows of a later split that an earlier one has too."""

    first: str
    second: str
    exact: int
    near: int
    rows: int  # of the second


@dataclass(frozen=True)
class LengthStatistics:
    """How long the rows are, in tokens: counted by a tokenizer, or estimated from words where none is at hand."""

    unit: str  # what counted
    rows: int  # how many rows were counted; of very large sets a regular sample
    total_tokens: int  # tokens of all rows, scaled up from those counted
    mean: float
    median: int
    p95: int
    max_length: int
    limit: int | None  # places the model has for tokens
    fraction_over_limit: float  # share of the rows that are longer
    bounds: tuple[int, ...]  # of the histogram; one more than counts
    counts: tuple[int, ...]


@dataclass(frozen=True)
class TrainingEstimate:
    """What training on the rows would take on this machine."""

    model: str
    parameters: int
    tokens: int  # of one pass over the rows
    memory: int  # bytes
    device: str  # in words: "this machine (2 CPU cores)"
    seconds: float  # of the whole training
    epochs: float
    steps: int
    assumptions: str


@dataclass(frozen=True)
class CheckReport:
    """Everything found, the worst first."""

    rows: int
    bad_rows: int
    task: str | None
    format: str
    labels: Mapping[str, int]
    findings: tuple[Finding, ...]
    splits: tuple[Split, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)  # low, mean and high of labels that are numbers
    lengths: LengthStatistics | None = None
    estimate: TrainingEstimate | None = None
    encoding: str | None = None  # of the first file
    complete: bool = True  # False where a file could not be read to its end
    seconds: float = 0.0

    def count(self, severity: str) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
