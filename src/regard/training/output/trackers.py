"""Training curves in other tools: TensorBoard files, Weights & Biases, MLflow. Nothing is sent unless asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.errors import MissingExtra
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent, event_numbers
from regard.training.output.tensorboard import tensorboard_progress

PROJECT = "regard"  # the name of the project (W&B) or experiment (MLflow), unless their own settings say another
Log = Callable[[dict[str, float], int], None]


def with_trackers(
    names: Sequence[str], folder: Path, settings: Mapping[str, Any], progress: OnTrainingEvent | None
) -> OnTrainingEvent | None:
    """A callback that logs each event to the tools of these names, then calls `progress`."""
    for name in names:
        if name == "tensorboard":
            progress = tensorboard_progress(folder, progress)
        else:
            start = {"wandb": _start_wandb, "mlflow": _start_mlflow}[name]
            progress = _logging(start(folder, settings), progress)
    return progress


def _logging(log: Log, progress: OnTrainingEvent | None) -> OnTrainingEvent:
    def write(event: TrainingEvent) -> None:
        if numbers := dict(event_numbers(event)):
            log(numbers, event.step)
        if progress is not None:
            progress(event)

    return write


def _start_wandb(folder: Path, settings: Mapping[str, Any]) -> Log:
    wandb = _module("wandb", "logging to Weights & Biases")
    wandb.finish()  # a run of this process that was started before
    run = wandb.init(project=PROJECT, name=folder.name, config=dict(settings))
    return lambda numbers, step: run.log(numbers, step=step)


def _start_mlflow(folder: Path, settings: Mapping[str, Any]) -> Log:
    mlflow = _module("mlflow", "logging to MLflow")
    mlflow.end_run()  # a run of this process that was started before
    mlflow.set_experiment(PROJECT)
    mlflow.start_run(run_name=folder.name)
    mlflow.log_params({name: str(value)[:500] for name, value in settings.items()})
    return lambda numbers, step: mlflow.log_metrics(numbers, step=step)


def _module(name: str, feature: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(feature, name) from error
