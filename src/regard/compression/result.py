"""What `regard.compress` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from regard.metrics.confidence import Score


@dataclass(frozen=True)
class CandidateResult:
    """One candidate, measured on this machine. The teacher is one too, with the method "teacher"."""

    name: str
    method: str  # how it was made, in words
    scores: dict[str, Score] = field(default_factory=dict)  # on the test rows, the main one first
    difference: Score | None = None  # of the main score to the teacher's, on the test rows
    dev_margin: Score | None = None  # main score minus floor times the teacher's, on the validation rows
    latency_ms: dict[str, float] = field(default_factory=dict)  # of one text, by its length in words
    texts_per_second: float = 0.0
    bytes: int = 0  # of the weights as they are computed with
    parameters: int = 0
    train_seconds: float = 0.0
    is_chosen: bool = False
    holds: bool | None = None  # whether it holds the floor on the test rows; None if it was not tested
    rows_needed: int | None = None  # test rows that would show it, where more rows would
    folder: str | None = None
    error: str | None = None  # why it has no result

    @property
    def cost(self) -> float:
        """What the search minimizes: the time of one text."""
        return self.latency_ms.get("24", float("inf"))

    def json(self) -> dict[str, Any]:
        """Every field; `kept` says whether it is the chosen model."""
        values = asdict(self)
        return {**{name: value for name, value in values.items() if name != "is_chosen"}, "kept": self.is_chosen}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CandidateResult:
        """What `json` returned."""
        values = {**values, "is_chosen": values["kept"]}
        del values["kept"]
        scores = {name: Score(**score) for name, score in values["scores"].items()}
        parts = {name: None if values[name] is None else Score(**values[name]) for name in ("difference", "dev_margin")}
        return cls(**{**values, "scores": scores, **parts})


@dataclass(frozen=True)
class Compression:
    """The result of `regard.compress`."""

    task: str
    metric: str  # the score that is kept
    floor: float
    teacher: CandidateResult
    candidates: tuple[CandidateResult, ...]  # in the order in which they were measured
    chosen: str | None  # name of the chosen candidate
    folder: str | None  # its model folder
    rows: int  # test rows
    dev_rows: int
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def chosen_candidate(self) -> CandidateResult | None:
        """The chosen candidate."""
        return next((candidate for candidate in self.candidates if candidate.is_chosen), None)

    def json(self) -> dict[str, Any]:
        """Every field as JSON holds it."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        candidates = [candidate.json() for candidate in self.candidates]
        return {**plain, "teacher": self.teacher.json(), "candidates": candidates, "notes": list(self.notes)}
