"""`regard evaluate A B DATA`: several models on the same rows, without training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard.comparison.groups import group_key, row_groups
from regard.comparison.labels import label_mapping, renamed
from regard.comparison.pairs import compare_tables, too_few
from regard.comparison.result import PairResult, SliceResult
from regard.comparison.slices import LABEL, Slices, divide, score_slices, slice_value
from regard.data.atomic import check_output_path
from regard.data.formats.writers import table_file
from regard.data.records import Record
from regard.data.rows import Row
from regard.data.sources.locate import DataLocation
from regard.errors import InputError, pluralize, setting
from regard.evaluation.evaluate import RowObserver, evaluate
from regard.evaluation.result import Evaluation
from regard.metrics.meter import Meter
from regard.metrics.paired.rows import HasRows, RowTable, row_table
from regard.predict import Model, load
from regard.predict.load import info
from regard.progress import OnProgress
from regard.tasks.classify import Classify
from regard.tasks.task import Answer, Task, with_abstention


@dataclass(frozen=True)
class ModelsEvaluation:
    """Scores of several models on the same rows, every pair of them, and scores by slice."""

    task: str
    rows: int
    metric: str  # the score that models are compared by
    models: dict[str, Evaluation]
    pairs: tuple[PairResult, ...]
    slices: tuple[SliceResult, ...]
    verdict: str
    notes: tuple[str, ...]
    seconds: float

    def json(self) -> dict[str, Any]:
        """Every field as JSON holds it."""
        models = [{"name": name, **evaluation.json()} for name, evaluation in self.models.items()]
        plain = {name: getattr(self, name) for name in ("task", "rows", "metric")}
        parts = {"pairs": [asdict(pair) for pair in self.pairs], "slices": [part.json() for part in self.slices]}
        rest = {"verdict": self.verdict, "notes": list(self.notes), "seconds": self.seconds}
        return {**plain, "models": models, **parts, **rest}


def evaluate_models(
    models: Sequence[Model | str | Path],
    data: DataLocation,
    *,
    metric: str | None = None,
    slices: Sequence[str] = (),
    predictions: str | Path | None = None,
    abstain: float | None = None,
    device: str = "auto",
    dtype: str = "fp32",
    seed: int = 0,
    progress: OnProgress | None = None,
    **options: Any,
) -> ModelsEvaluation:
    """Score models on the same labeled rows, and test every pair of them.

    One model is in memory at a time. Rows of one group column (`columns={"group": …}`), one paragraph or one source
    sentence are resampled as a whole.

    metric: the score to compare by; the main score of the task if not given.
    slices: also score by "length", "label" or a column of the data.
    predictions: a file for the answers of all models, one row per row of the data, with its texts, its label, and what
        it is sliced by.
    abstain: confidence below which a model does not answer; each evaluation and each slice has the fraction of rows
        that are answered, and the score of these. Pairs are tested on all rows.
    options: further arguments of `regard.evaluate`, such as split, columns, format, labels and batch_tokens.

    Example: `evaluate_models(["runs/a", "runs/b"], "test.csv", slices=["length"]).verdict`.
    """
    started = time.monotonic()
    names = model_names(models)
    check_labels(dict(zip(names, models, strict=True)))
    target = None if predictions is None else Path(predictions).expanduser()
    if target is not None:
        check_output_path(target, "predictions", inputs=[data])
    observers: dict[str, RowCollector] = {}
    evaluations = {}
    for name, model in zip(names, models, strict=True):
        first = next(iter(observers.values()), None)
        own_slices = tuple(slices) if first is None else ()
        observer = RowCollector(name, own_slices, first, answers=target is not None, abstain=abstain)
        loaded = model if isinstance(model, Model) else load(model, device=device, dtype=dtype)
        evaluations[name] = evaluate(
            loaded, data, abstain=abstain, progress=progress, observer=observer, seed=seed, **options
        )
        observer.check_same_rows(first)
        observers[name] = observer
        del loaded
    if target is not None:
        write_predictions(target, list(observers.values()))
    return _compared(names, evaluations, observers, metric, seed, started)


def _compared(
    names: Sequence[str],
    evaluations: dict[str, Evaluation],
    observers: dict[str, RowCollector],
    metric: str | None,
    seed: int,
    started: float,
) -> ModelsEvaluation:
    tables = {name: [observer.table()] for name, observer in observers.items()}
    first = observers[names[0]]
    groups = row_groups(first.groups)
    chosen = metric or tables[names[0]][0].main
    tables[names[0]][0].score(chosen)  # an error for an unknown name
    result = compare_tables(tables, chosen, groups=groups.numbers, reason=first.one_class(), seed=seed)
    scores = {
        name: replace(one, scores={**one.scores, chosen: result.scores[name]}) if groups.numbers is not None else one
        for name, one in evaluations.items()
    }
    abstains = any(one.abstention is not None for one in evaluations.values())
    answered = {name: observer.answered for name, observer in observers.items()} if abstains else None
    sliced = score_slices(tables, chosen, first.sliced(), answered=answered, seed=seed) if first.slices else ()
    verdict = ". ".join(pair.verdict for pair in result.pairs)
    if len(names) == 1:
        verdict = too_few(result.units, evaluations[names[0]].rows) or ""
    return ModelsEvaluation(
        task=evaluations[names[0]].task,
        rows=evaluations[names[0]].rows,
        metric=chosen,
        models=scores,
        pairs=result.pairs,
        slices=sliced,
        verdict=verdict,
        notes=() if groups.note is None else (groups.note,),
        seconds=round(time.monotonic() - started, 3),
    )


def model_names(models: Sequence[Model | str | Path]) -> list[str]:
    """A short name for each model, different for all of them."""
    if not models:
        raise InputError("no model was given; expected at least one.")
    full = [str(model.folder or "model") if isinstance(model, Model) else str(model) for model in models]
    short = [Path(name).name or name for name in full]
    names = [name if short.count(name) == 1 else long for name, long in zip(short, full, strict=True)]
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, start=1)]


def check_labels(models: dict[str, Model | str | Path]) -> None:
    """Raise InputError if two models have tasks or labels that differ, before any of them is run."""
    known = {name: model if isinstance(model, Model) else info(model) for name, model in models.items()}
    labeled = [(name, model) for name, model in known.items() if model.labels]
    for name, model in labeled[1:]:
        first, other = labeled[0]
        if None not in (model.task, other.task) and model.task != other.task:
            raise InputError(
                f"{first} is a model for {other.task}, but {name} is one for {model.task}. Compare models of one task."
            )
        label_mapping(model.labels or (), other.labels or (), model=name, where=first)


class RowCollector(RowObserver):
    """Keeps what a comparison needs of every row: its numbers, its group, its slices, and its answer if asked to."""

    def __init__(
        self,
        name: str,
        slices: Sequence[str],
        first: RowCollector | None,
        *,
        answers: bool = False,
        abstain: float | None = None,
    ) -> None:
        self.name, self.slices, self.abstain = name, tuple(slices), abstain
        self.answered: list[bool] = []  # by row, with `abstain`
        self.labels: tuple[str, ...] | None = None if first is None else first.labels
        self.groups: list[tuple[str, str] | None] = []
        self.slice_values: list[tuple[Any, ...]] = []
        self.inputs: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.strata: set[str | float] = set()
        self._is_first, self._keep_answers = first is None, answers
        self._mapping: dict[str, str] | None = None
        self._meter: Meter | None = None
        self._inputs_hash: list[int] = []

    def scoring_task(self, task: Task) -> Task:
        """Labels are those of the first model, in its order, so that rows can be compared."""
        if not isinstance(task, Classify) or not task.names:
            return task
        if self.labels is None:
            self.labels = task.names
        if self.labels == task.names:
            return task
        self._mapping = label_mapping(task.names, self.labels, model=self.name, where="the first model")
        return replace(task, names=self.labels)

    def meter(self, task: Task) -> Meter:
        meter = task.meter()
        if isinstance(meter, HasRows):
            meter.keep_rows()
        self._meter = meter
        return meter

    def on_read(self, row: Row, record: Record) -> None:
        self._inputs_hash.append(hash(record.input_texts))
        if not self._is_first:
            return
        self.groups.append(group_key(record))
        self.strata.add(record.stratum)
        if self.slices:
            self.slice_values.append(tuple(slice_value(name, row, record) for name in self.slices))
        if self._keep_answers:
            gold = getattr(record, "label", record.annotation)
            self.inputs.append({**dict(record.texts), "gold": gold})

    def answer(self, record: Record, answer: Answer) -> Answer:
        result = renamed(answer, self._mapping)
        marked = result if self.abstain is None else with_abstention(result, self.abstain)
        if self.abstain is not None:
            self.answered.append(not marked.abstained)
        if self._keep_answers:
            self.answers.append(marked.json())
        return result

    def table(self) -> RowTable:
        """The numbers of the rows."""
        assert self._meter is not None
        return row_table(self._meter)

    def sliced(self) -> Slices:
        """The slice of every row."""
        columns = list(zip(*self.slice_values, strict=True))
        return Slices(self.slices, tuple(divide(name, one) for name, one in zip(self.slices, columns, strict=True)))

    def slice_columns(self, number: int) -> dict[str, Any]:
        """What a row is sliced by, as it is in the data: columns and its length, without what `inputs` has."""
        values = dict(zip(self.slices, self.slice_values[number], strict=True)) if self.slices else {}
        return {name: value for name, value in values.items() if name not in (LABEL, *self.inputs[number])}

    def one_class(self) -> str | None:
        """Why rows of one class allow no verdict."""
        if self.labels is None or len(self.strata) != 1:
            return None
        return f"all rows have the label {next(iter(self.strata))}, so other labels are not tested"

    def check_same_rows(self, first: RowCollector | None) -> None:
        """Raise InputError if models were given other rows."""
        if first is not None and first._inputs_hash != self._inputs_hash:
            raise InputError(
                f"{self.name} and {first.name} read {pluralize(len(self._inputs_hash), 'row')} and "
                f"{pluralize(len(first._inputs_hash), 'row')} of the data, not the same ones: they are for different "
                f"tasks or columns. Name the columns with {setting('columns')}, or compare models of one task."
            )


def write_predictions(target: Path, observers: Sequence[RowCollector]) -> None:
    """The texts and the label of every row, what it is sliced by, and what each model answered."""
    sliced = observers[0].sliced()
    with table_file(target) as write:
        for number, inputs in enumerate(observers[0].inputs):
            slices = {f"slice.{name}": values[number] for name, values in zip(sliced.names, sliced.values, strict=True)}
            answers: dict[str, Any] = {}
            for observer in observers:
                values = observer.answers[number]
                own = {key: value for key, value in values.items() if key not in ("truncated", "windows")}
                prefix = f"{observer.name}." if len(observers) > 1 else ""
                answers |= {f"{prefix}{key}": value for key, value in own.items()}
            write({**inputs, **observers[0].slice_columns(number), **slices, **answers})
