"""What a training would choose, without training: its settings, and the reason of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from regard.data.schema.columns import Columns
from regard.device import pick_device
from regard.random_state import preserved_random_state
from regard.training.defaults.explain import SettingReason, explain_settings
from regard.training.defaults.recipes import resolve_settings, without_steps
from regard.training.engine.optimizer import frozen_parameters
from regard.training.inputs.labeled import labeled_inputs
from regard.training.inputs.refit import should_refit
from regard.training.load_data import LabeledData, Where, load_data
from regard.training.pipeline import check_unused
from regard.training.run import TrainingInputs
from regard.training.settings import Settings, TrainSettings


def explain_defaults(data: Where | LabeledData, **arguments: Unpack[DataArguments]) -> list[SettingReason]:
    """The settings that `train` would use on this data, each with its reason. Nothing is trained or written.

    The arguments are those of `train`.
    """
    user_settings, inputs, records = _untrained(data, arguments)
    check_unused(inputs)
    refit = should_refit(inputs, records, device=pick_device(user_settings.device), ranks=1)
    return explain_settings(user_settings, inputs, records, refit=refit)


def choose_settings(data: Where | LabeledData, **arguments: Unpack[DataArguments]) -> Settings:
    """Every setting with the value that `train` would use on this data. Nothing is trained or written.

    The arguments are those of `train`.
    """
    return _resolved(_untrained(data, arguments)[1])


def settings_to_repeat(data: Where | LabeledData, **arguments: Unpack[DataArguments]) -> Settings:
    """The settings with which `train` does on this data what it would do by default; see `choose_settings`.

    A network that is ready before the first step has no values for its steps: with them, it would be trained further.
    """
    _, inputs, _ = _untrained(data, arguments)
    return without_steps(_resolved(inputs), inputs.settings) if inputs.fitted else _resolved(inputs)


def _resolved(inputs: TrainingInputs) -> Settings:
    model = inputs.model
    return resolve_settings(
        inputs.settings, inputs.size, model.checkpoint.config, pretrained=model.pretrained, recipe=inputs.recipe
    )


class DataArguments(TrainSettings, total=False):
    """The arguments of `train` that say what is trained on which data."""

    start: str | Path | None
    preset: str | None
    tokenizer: str | Path | None
    dev: Where | None
    task: str | None
    format: str | None
    columns: Columns | None
    encoding: str | None
    labels: str | None


def _untrained(data: Where | LabeledData, arguments: Mapping[str, Any]) -> tuple[Settings, TrainingInputs, LabeledData]:
    """The settings as they were given, the initial model with the data, and the data."""
    names = ("dev", "task", "format", "columns", "encoding", "labels")
    reading = {name: arguments.get(name) for name in names}
    beginning: dict[str, Any] = {name: arguments.get(name) for name in ("start", "preset", "tokenizer")}
    rest = {name: value for name, value in arguments.items() if name not in (*reading, *beginning)}
    user_settings = Settings.of(rest)
    with preserved_random_state(pick_device(user_settings.device)):
        records = load_data(data, dev_fraction=user_settings.dev_fraction, seed=user_settings.seed, **reading)
        beginning |= {"user_settings": user_settings, "initial_seed": user_settings.seed}
        inputs = labeled_inputs(records, **beginning)
        frozen_parameters(inputs.model.checkpoint.network, user_settings.freeze or ())  # names of parts are checked
        return user_settings, inputs, records
