"""What a comparison returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from regard.display import html_summary
from regard.metrics.confidence import Score, scores_in_words


@dataclass(frozen=True)
class PairResult:
    """Two models on the same rows: `difference` is the score of `a` minus that of `b`."""

    a: str
    b: str
    metric: str
    difference: float
    low: float  # 95 % interval of the difference
    high: float
    p: float  # the largest p of the tests that apply
    p_holm: float  # the same, corrected for the number of pairs
    p_bootstrap: float
    p_randomization: float | None
    p_mcnemar: float | None
    rows_needed: int | None  # rows that would show a difference of this size; None if no number would do
    better: str | None  # the better model; None if they cannot be told apart
    verdict: str  # in words

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class AnsweredRows:
    """The rows of a slice that a model answers with a confidence that is high enough."""

    rows: int
    coverage: Score  # fraction of the rows of the slice
    score: Score | None  # on these rows only; None if there is none


@dataclass(frozen=True)
class SliceResult:
    """The score of every model on some of the rows."""

    by: str  # what the rows were divided by: length, label, or a column
    value: str  # which of them these are
    rows: int
    metric: str
    scores: dict[str, Score]  # by model
    difference: Score | None = None  # of the first two models
    answered: dict[str, AnsweredRows] | None = None  # by model; None without `abstain`

    def json(self) -> dict[str, Any]:
        """Every field as JSON holds it; `answered` only if there was a confidence to abstain below."""
        values = asdict(self)
        return values if self.answered is not None else {name: values[name] for name in values if name != "answered"}


@dataclass(frozen=True)
class ModelResult:
    """One model of a comparison. With several seeds, numbers are means over the seeds."""

    name: str
    kind: str  # "from scratch", "fine-tuned", "baseline" or "loaded"
    scores: dict[str, Score] = field(default_factory=dict)  # the main one first, each with a 95 % interval
    seeds: tuple[float, ...] = ()  # the main score of each seed
    parameters: int = 0
    train_seconds: float = 0.0
    latency_ms: float = 0.0  # of one text
    texts_per_second: float = 0.0  # of many texts
    memory_bytes: int | None = None  # peak memory of the process during training and scoring; None if not known
    bytes: int = 0  # size of the weights
    folder: str | None = None  # the model folder of the first seed
    predictions: str | None = None  # the file with its answers
    error: str | None = None  # why it has no result

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RuleOfThumb:
    """Number of samples / words per sample: below 1,500 n-grams are expected to be best, else a sequence model.

    The rule is from Google's guide to text classification.
    """

    samples: int
    words_per_sample: float
    ratio: float
    expects: str  # "n-grams" or "a sequence model"
    sentence: str  # the rule beside what was measured


@dataclass(frozen=True)
class LearningCurve:
    """Scores of one model on growing parts of the training rows, and where the curve goes.

    The curve is a - b * rows ** -c, fitted with weights (Figueroa et al. 2012).
    """

    name: str
    rows: tuple[int, ...]
    scores: tuple[Score, ...]
    predicted: dict[int, Score]  # score expected with more rows
    limit: Score  # a: the score with any number of rows
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """The result of `regard.compare`."""

    task: str
    metric: str  # the score that models are compared by
    rows: int  # test rows
    train_rows: int
    dev_rows: int
    models: tuple[ModelResult, ...]  # the best first; those without a result last
    pairs: tuple[PairResult, ...]
    verdict: str  # in words
    best: str | None  # the model with the best score
    cheapest: str | None  # the fastest model within 1 point of the best
    rule_of_thumb: RuleOfThumb | None = None
    curves: tuple[LearningCurve, ...] = ()
    units: int = 0  # groups of rows that were resampled; the number of rows without groups
    higher_is_better: bool = True
    seeds: int = 1
    data: str = ""  # the recognized format and columns
    test: str = "split off"  # where the test rows come from
    test_uses: int = 1  # how often these test rows were used in this folder
    notes: tuple[str, ...] = ()
    folder: str | None = None
    seconds: float = 0.0

    def model(self, name: str) -> ModelResult:
        """The result of a model by its name."""
        return next(model for model in self.models if model.name == name)

    def _repr_html_(self) -> str:
        scores = {
            model.name: model.error or f"{scores_in_words(model.scores)[self.metric]}, {model.latency_ms:.3g} ms"
            for model in self.models
        }
        return html_summary(f"{self.task}: {self.metric}, time of one text", {**scores, "verdict": self.verdict})

    def json(self) -> dict[str, Any]:
        """Every field as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Comparison:
        """The comparison that results.json holds."""
        models = [ModelResult(**{**model, "scores": _scores(model["scores"])}) for model in values["models"]]
        rule = values["rule_of_thumb"]
        read = {
            "models": tuple(ModelResult(**{**vars(model), "seeds": tuple(model.seeds)}) for model in models),
            "pairs": tuple(PairResult(**pair) for pair in values["pairs"]),
            "rule_of_thumb": None if rule is None else RuleOfThumb(**rule),
            "curves": tuple(_curve(curve) for curve in values["curves"]),
            "notes": tuple(values["notes"]),
        }
        return cls(**{**values, **read})


def _scores(values: Mapping[Any, Any]) -> dict[Any, Score]:
    return {name: Score(**score) for name, score in values.items()}


def _curve(values: Mapping[str, Any]) -> LearningCurve:
    return LearningCurve(
        name=values["name"],
        rows=tuple(values["rows"]),
        scores=tuple(Score(**score) for score in values["scores"]),
        predicted={int(rows): Score(**score) for rows, score in values["predicted"].items()},
        limit=Score(**values["limit"]),
        sentence=values["sentence"],
    )
