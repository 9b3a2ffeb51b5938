"""`regard.compare`: which model is best for this data."""

from __future__ import annotations

import contextlib
import tempfile
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from regard.comparison.caveats import check_metric, seen_notes
from regard.comparison.plan import ComparisonPlan
from regard.comparison.plot import draw_curves, draw_pareto
from regard.comparison.result import Comparison
from regard.comparison.state import CURVES, PARETO, REPORT, open_folder, write_results
from regard.comparison.trainings.compared_data import TEST_FRACTION, load_compared_data
from regard.comparison.trainings.specs import model_specs
from regard.comparison.trainings.time_budget import parse_duration
from regard.data.schema.columns import Columns
from regard.errors import InputError, setting
from regard.locks import folder_lock
from regard.progress import OnProgress
from regard.report.comparison_page import comparison_page
from regard.training.load_data import Where
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.settings import Settings, TrainSettings


def compare(
    data: Where,
    *,
    models: Sequence[str | Path],
    test: Where | None = None,
    dev: Where | None = None,
    out: str | Path | None = None,
    seeds: int = 1,
    time: str | float | None = None,
    curve: bool = False,
    metric: str | None = None,
    task: str | None = None,
    test_fraction: float = TEST_FRACTION,
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    overwrite: bool = False,
    progress: OnProgress | None = None,
    training: OnTrainingEvent | None = None,
    **settings: Unpack[TrainSettings],
) -> Comparison:
    """Train or load each model on the same rows, and say which is best, with tests and measured costs.

    data: as for `regard.train`. Test rows are split off, unless the data has a test split or `test` is given.
    models: names: ngram, static, probe (baselines), a preset (trained from scratch), minilm or a hub id (fine-tuned), a
        folder with a trained model (loaded as it is); `start:NAME` and `preset:NAME` say which of two is meant.
    test: data for a final test, scored once per model.
    out: a folder for the models, their predictions, results.json and plots; a comparison that was killed goes on there.
        Nothing is kept if not given.
    seeds: trainings of each model, with seeds 0, 1, …; the differences between them count in the tests.
    time: budget for all trainings together, such as "30m": each gets the same share, with fewer steps if needed.
    curve: also train on 1/16 to 1/2 of the rows, and predict the score with more rows.
    metric: the score to compare by; the main score of the task if not given.
    columns: the columns by role; rows with the same value in the column of the role "group" are resampled together.
    progress: called with `Progress("models", done, total)`; its `values` have the model and a message.
    training: called with the events of each training.
    settings: of all trainings, see `regard.Settings`. ngram and probe, which are fitted at once, take only the class
        balance.

    Example: `regard.compare("reviews.csv", models=["ngram", "minilm"]).verdict`.
    """
    started = clock.monotonic()
    Settings.of(settings)  # an error for a wrong value before anything is read
    if seeds < 1:
        raise InputError(f"{setting('seeds')} is {seeds}, expected at least 1.")
    budget = parse_duration(time)
    reading: dict[str, Any] = {"format": format, "columns": columns, "encoding": encoding, "labels": labels}
    rows = load_compared_data(data, test=test, dev=dev, task=task, test_fraction=test_fraction, **reading)
    specs = model_specs(models, task=rows.labeled.task, labels=rows.task.labels)
    check_metric(rows, metric)
    rows = replace(rows, notes=(*rows.notes, *seen_notes(rows, specs)))
    shared = {name: value for name, value in settings.items() if name != "device"}
    identity = {**rows.identity, "settings": shared, "time": budget}
    with _folder(out, identity, overwrite=overwrite) as folder:
        plan = ComparisonPlan(
            rows, tuple(specs), folder, seeds, budget, curve, metric, dict(settings), progress, training
        )
        result = replace(plan.run(), seconds=round(clock.monotonic() - started, 3))
        if out is None:
            not_kept = (replace(model, folder=None, predictions=None) for model in result.models)
            return replace(result, folder=None, models=tuple(not_kept))
        _write_files(folder, result)
        return result


def _write_files(folder: Path, result: Comparison) -> None:
    draw_pareto(result, folder / PARETO)
    if result.curves:
        draw_curves(result, folder / CURVES)
    (folder / REPORT).write_text(comparison_page(result, name=folder.name), encoding="utf-8")
    write_results(folder, result)


@contextlib.contextmanager
def _folder(out: str | Path | None, identity: Mapping[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """The folder of the comparison, locked; a temporary one if none was named."""
    if out is None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "comparison")
            open_folder(folder, identity, overwrite=False)
            yield folder
        return
    folder = Path(out).expanduser()
    fix = "Wait until it has ended, stop it, or name another folder with --out."
    with folder_lock(folder, activity="written by a comparison", fix=fix):
        open_folder(folder, identity, overwrite=overwrite)
        yield folder
