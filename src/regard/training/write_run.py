"""What a finished training leaves: the model folder with its card, its settings, its scores and its curves."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Mapping, Sized
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import torch

from regard import __version__
from regard.checkpoint.files import write_json
from regard.checkpoint.folder import Checkpoint, write_folder
from regard.checkpoint.manifest import CARD, CURVES, METRICS, RUN
from regard.errors import FolderError
from regard.tasks.inference import ScoreResult
from regard.tasks.task import Task
from regard.text.tokenizer import Tokenizer
from regard.training.curves import draw_curves
from regard.training.job import FitResult, TrainingJob
from regard.training.metrics_log import read_metrics
from regard.training.model_card import model_card
from regard.training.resume.lock import check_free
from regard.training.resume.state import STATE, remove_state, state_files


class About(Protocol):
    """What is told of the data."""

    @property
    def train(self) -> Sized: ...
    @property
    def dev(self) -> Sized: ...
    @property
    def why(self) -> str: ...
    @property
    def split_off(self) -> bool: ...
    @property
    def fingerprint(self) -> str: ...


def finish(
    folder: Path,
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    task: Task,
    job: TrainingJob,
    done: FitResult,
    final: ScoreResult | None,
    data: About,
    identity: Mapping[str, Any],
    *,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the model whole over the run's folder; then the state has served. `more` is for run.json."""
    run = run_json(task, job, done, final, data, identity) | dict(more or {})

    def beside(fresh: Path) -> None:
        tokenizer.save(fresh)
        write_json(fresh / RUN, run)
        (fresh / CARD).write_text(model_card(checkpoint, run), encoding="utf-8")
        shutil.copy2(folder / METRICS, fresh / METRICS)
        draw_curves(read_metrics(folder), fresh / CURVES, usual=run.get("baseline"))

    try:
        check_free(folder)  # once more: something may have been put there meanwhile
        state = {f"{STATE}/{name}" for name in state_files(folder)}
        write_folder(folder, checkpoint, overwrite=True, write_extra_files=beside, drop=lambda ours: ours | state)
    except OSError as error:
        kept = "The state saved before is kept" if (folder / STATE).is_dir() else "No state was saved before"
        raise FolderError(f"{error} {kept}: fix that, then go on with --resume.") from error
    remove_state(folder)


def run_json(
    task: Task, job: TrainingJob, done: FitResult, final: ScoreResult | None, data: About, identity: Mapping[str, Any]
) -> dict[str, Any]:
    """Every setting as it was resolved, what was read, and what came out."""
    scores = {} if final is None else {name: asdict(score) for name, score in final.scores.items()}
    found = {
        "regard": __version__,
        "task": task.name,
        "task_settings": task.settings(),
        "start": identity.get("start"),
        "tokenizer": identity.get("tokenizer"),
        "settings": asdict(job.settings),
        "data": {
            "recognised": data.why,
            "train_rows": len(data.train),
            "dev_rows": len(data.dev),
            "dev_split_off": data.split_off,
            "hash": data.fingerprint,
            **getattr(data, "remembered", {}),
        },
        "scores": scores,
        "main": None if final is None else final.main,
        "signatures": task.signatures if scores else {},
        "done": asdict(done),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "device": str(next(job.network.parameters()).device),
    }
    readable: dict[str, Any] = json.loads(json.dumps(found))
    return readable
