"""The files of a finished training: the model folder with its card, settings, scores and curves."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from regard._version import __version__
from regard.checkpoint.files import write_json
from regard.checkpoint.manifest import CARD, CURVES, METRICS, REPORT, RUN
from regard.checkpoint.write_folder import write_folder
from regard.data.seen_rows import hash_sample
from regard.errors import FolderError
from regard.metrics.report import ClassificationReport, report_of
from regard.report.facts import RunFacts
from regard.report.model_card import model_card
from regard.report.page import report_page
from regard.report.row_facts import row_facts
from regard.training.defaults.recipes import without_steps
from regard.training.load_data import LabeledData
from regard.training.output.curves import draw_curves
from regard.training.output.metrics_log import read_metrics
from regard.training.resume.lock import check_free
from regard.training.resume.state import STATE, remove_state, state_files
from regard.training.run import TrainedRun
from regard.training.validation import RecordValidation


def write_run(run: TrainedRun) -> None:
    """Write the model in one step over the folder of the run, then remove the training state."""
    folder = run.context.folder
    model = run.inputs.model
    info = run_json(run)
    facts = run_facts(run, info)

    def write_others(new_folder: Path) -> None:
        model.tokenizer.save(new_folder)
        write_json(new_folder / RUN, info)
        (new_folder / CARD).write_text(model_card(facts), encoding="utf-8")
        (new_folder / REPORT).write_text(report_page(facts), encoding="utf-8")
        shutil.copy2(folder / METRICS, new_folder / METRICS)
        draw_curves(facts.events, new_folder / CURVES, baseline=info.get("baseline"))

    try:
        check_free(folder)  # once more: files may have been put there during training
        state = {f"{STATE}/{name}" for name in state_files(folder)}
        write_folder(
            folder, model.checkpoint, overwrite=True, write_extra_files=write_others, drop=lambda own: own | state
        )
    except OSError as error:
        state_message = "The state saved before is kept" if (folder / STATE).is_dir() else "No state was saved before"
        raise FolderError(f"{error} {state_message}: fix that, then continue with --resume.") from error
    remove_state(folder)


def run_facts(run: TrainedRun, info: Mapping[str, Any]) -> RunFacts:
    """What the report and the model card say."""
    scores, validation = run.scores, run.inputs.validation
    task = run.task
    if isinstance(validation, RecordValidation):
        task = task.bind(validation.preprocessing)
    return RunFacts.of(
        run.inputs.model.checkpoint,
        info,
        name=run.context.folder.name,
        events=read_metrics(run.context.folder),
        report=ClassificationReport() if scores is None else report_of(scores.meter),
        calibration=None if scores is None else scores.calibration,
        uncalibrated=run.uncalibrated,
        rows=row_facts(task, run.rows, run.answers),
    )


def run_json(run: TrainedRun) -> dict[str, Any]:
    """The content of run.json: every setting, what was chosen for those that were left open, the data, the scores."""
    data, job = run.inputs.data, run.job
    scores = {} if run.scores is None else {name: asdict(score) for name, score in run.scores.scores.items()}
    info = {
        "regard": __version__,
        "task": run.task.name,
        "task_settings": run.task.settings(),
        "start": job.identity.get("start"),
        "tokenizer": job.identity.get("tokenizer"),
        "settings": asdict(without_steps(job.settings, run.inputs.settings) if run.inputs.fitted else job.settings),
        "chosen": _chosen(run),
        "data": {
            "recognized": data.reason,
            "train_rows": len(data.train),
            "dev_rows": len(data.dev),
            "dev_split_off": data.split_off,
            "hash": data.fingerprint,
            **_row_hashes(run),
            **getattr(data, "read_options", {}),
        },
        "scores": scores,
        "main": None if run.scores is None else run.scores.main,
        **_calibration(run),
        "signatures": run.task.signatures if scores else {},
        "done": asdict(run.fitted),
        "seconds": run.seconds,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "device": str(next(job.network.parameters()).device),
        **run.details,
    }
    readable: dict[str, Any] = json.loads(json.dumps(info))
    return readable


def _chosen(run: TrainedRun) -> dict[str, Any]:
    """What was used for settings that were left open: "auto" or None."""
    data, model, settings = run.inputs.data, run.inputs.model, run.job.settings
    chosen: dict[str, Any] = {"dtype": "bf16" if run.job.dtype == torch.bfloat16 else "fp32"}
    if isinstance(data, LabeledData):
        chosen["refit"] = "yes" if "refit" in run.details else "no"
        if data.split_off:
            chosen["dev_fraction"] = round(len(data.dev) / (len(data.train) + len(data.dev)), 4)
    if run.task.probe != "never" and "preset" not in run.details:
        chosen |= {"head_init": model.head_init, "pooling": model.pooling}
    if run.job.steps:
        chosen["dropout"] = run.job.network.config.dropout
    return {name: value for name, value in chosen.items() if getattr(settings, name) in (None, "auto")}


def _row_hashes(run: TrainedRun) -> dict[str, str]:
    """A sample of the hashes of the rows that the network was trained on; none of plain text."""
    data = run.inputs.data
    if not isinstance(data, LabeledData):
        return {}
    return {"row_hashes": hash_sample([*data.train, *data.dev] if "refit" in run.details else data.train)}


def _calibration(run: TrainedRun) -> dict[str, Any]:
    """The calibration error on the validation rows, before and after the tuning; nothing without probabilities."""
    before, scores = run.uncalibrated, run.scores
    if before is None or scores is None or scores.calibration is None:
        return {}
    return {"calibration": {"error": scores.calibration.error, "error_before": before.error}}
