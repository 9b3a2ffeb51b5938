"""From labeled data to a model folder: `regard.train`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from regard.data.schema.columns import Columns
from regard.device import pick_device
from regard.random_state import preserved_random_state
from regard.training.engine.distillation import Distillation
from regard.training.from_scratch.preset_model import check_model_settings
from regard.training.head_init.initializer import progress_reporter
from regard.training.head_init.mean_weights import MeanWeights
from regard.training.initial_model import check_preset
from regard.training.inputs.labeled import labeled_inputs
from regard.training.inputs.refit import with_refit
from regard.training.load_data import LabeledData, Where, load_data
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.pipeline import run_pipeline
from regard.training.result import TrainResult
from regard.training.resume.lock import claim, exclusive
from regard.training.resume.state import saved_settings
from regard.training.run import RunContext
from regard.training.settings import Settings, TrainSettings


@exclusive
def train(
    data: Where | LabeledData,
    *,
    out: str | Path,
    start: str | Path | None = None,
    preset: str | None = None,
    tokenizer: str | Path | None = None,
    dev: Where | None = None,
    task: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    skip_bad: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: OnTrainingEvent | None = None,
    distillation: Distillation | None = None,
    initial_seed: int | None = None,
    mean: MeanWeights | None = None,
    **settings: Unpack[TrainSettings],
) -> TrainResult:
    """Train a model on labeled data and write it as a folder that transformers opens too.

    data: a path or several, a folder, a glob, "-"; rows in memory, as dicts, a dict of columns, a data frame, a pyarrow
        table, a `datasets.Dataset` or `DatasetDict`; or the result of `regard.training.load_data.load_data`.
    out: the folder to write.
    start: a model folder, minilm (the default), or a hub id to fine-tune.
    preset: or the name of a network to train from scratch, or of a baseline: ngram, static or probe.
    tokenizer: its tokenizer; learned from the data if not given.
    dev: rows to score on; if not given, the folder's own validation split, or a tenth of the data.
    task: recognized from the data if not given, as are `labels` (single, class, multi, number).
    format: of the files, such as "csv"; recognized if not given.
    columns: the columns of the data by role, such as {"text": "review", "label": "stars"}.
    encoding: of the files, such as "cp1252"; recognized from their bytes if not given.
    skip_bad: a file for rows that cannot be used; without it the first such row is an error.
    resume: continue a run with the same data and settings that was stopped or killed. A run that had not begun is
        begun, and of one that has ended the result is returned.
    progress: called with a `TrainingEvent` for the start, every few steps and every score.
    distillation: a teacher, see `regard.training.engine.distillation`.
    initial_seed: seed of randomly initialized weights; that of the settings if not given.
    mean: folders whose mean weights are scored and written in place of a training.
    settings: see `regard.Settings`.

    Example: `regard.train("reviews.csv", out="runs/reviews", epochs=3)`.
    """
    user_settings = Settings.of(settings)
    check_preset(preset)
    check_model_settings(preset, user_settings.model)
    device = pick_device(user_settings.device)
    folder = claim(Path(out).expanduser(), resume=resume, overwrite=overwrite)
    reading: dict[str, Any] = {"format": format, "columns": columns, "encoding": encoding}
    reading |= {"labels": labels, "skip_bad": skip_bad}
    with preserved_random_state(device):
        context = RunContext.join(folder, device, resume=resume, progress=progress)
        records = load_data(
            data, dev=dev, task=task, dev_fraction=user_settings.dev_fraction, seed=user_settings.seed, **reading
        )
        build = partial(labeled_inputs, user_settings=user_settings, start=start, preset=preset, tokenizer=tokenizer)
        first_seed = user_settings.seed if initial_seed is None else initial_seed
        build = partial(build, report=progress_reporter(context), distillation=distillation, initial_seed=first_seed)
        build = partial(build, ranks=context.world.ranks)
        inputs = with_refit(build(records), records, build, mean, device=device, ranks=context.world.ranks)
        saved = saved_settings(user_settings, folder) if resume else {}
        return run_pipeline(context, replace(inputs, saved_settings=saved), TrainResult)
