"""Models of a comparison by name: a baseline, a preset, a pretrained model to fine-tune, or a trained model to load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.baselines import BASELINES, check_task
from regard.checkpoint.families import PRESETS
from regard.checkpoint.hub import looks_like_hub_id
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import from_preset
from regard.comparison.labels import label_mapping
from regard.errors import InputError, setting, suggest
from regard.predict.info import ModelInfo
from regard.predict.load import info
from regard.tasks import TASKS

SCRATCH, FINE_TUNED, BASELINE, LOADED = "from scratch", "fine-tuned", "baseline", "loaded"
PREFIXES = ("preset", "start", "static", "probe")
LARGE = 50_000_000  # parameters above which a name that is both a preset and published weights must say which


@dataclass(frozen=True)
class ModelSpec:
    """One model of a comparison: how it is shown, and the arguments of its training."""

    name: str
    kind: str
    preset: str | None = None
    start: str | None = None

    @property
    def slug(self) -> str:
        """The name as a folder name."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip("-.") or "model"


def model_specs(names: Sequence[str | Path], *, task: str, labels: Sequence[str] | None) -> list[ModelSpec]:
    """What each name means, for this task. Raises InputError for an unknown name or a model that does not fit.

    `preset:NAME` trains from scratch, `start:NAME` fine-tunes, `probe:NAME` and `static:NAME` are baselines on the
    vectors of NAME.
    """
    if isinstance(names, str | Path) or not names:
        raise InputError(f"{setting('models')} is {names!r}; expected names of models, such as ngram and minilm.")
    specs = [model_spec(str(name), task=task, labels=labels) for name in names]
    slugs = [spec.slug for spec in specs]
    twice = next((spec.name for spec in specs if slugs.count(spec.slug) > 1), None)
    if twice is not None:
        raise InputError(
            f'{setting("models")}: "{twice}" is named twice, or another name is too similar. Name it once.'
        )
    return specs


def model_spec(name: str, *, task: str, labels: Sequence[str] | None) -> ModelSpec:
    """What a name means."""
    prefix, _, rest = name.partition(":")
    if prefix in PREFIXES and rest and not Path(name).exists():
        if prefix in BASELINES:
            check_task(prefix, task)
            return ModelSpec(name, BASELINE, preset=prefix, start=rest)
        return ModelSpec(name, SCRATCH, preset=rest) if prefix == "preset" else ModelSpec(name, FINE_TUNED, start=rest)
    if Path(name).expanduser().is_dir():
        return _of_model(name, _folder_name(name), task, labels)
    if name in BASELINES:
        check_task(name, task)
        return ModelSpec(name, BASELINE, preset=name)
    if name == "minilm":
        return ModelSpec(name, FINE_TUNED, start=name)
    if name in PRESETS:
        _check_ambiguous(name)
        return ModelSpec(name, SCRATCH, preset=name)
    if name in PUBLISHED:
        return ModelSpec(name, FINE_TUNED, start=name)
    if looks_like_hub_id(name):
        return _of_model(name, name, task, labels)
    if "," in name:
        raise InputError(
            f'{setting("models")}: "{name}" is not a model. Separate names with blanks: {name.replace(",", " ")}.'
        )
    known = [*BASELINES, "minilm", *PRESETS, *PUBLISHED]
    raise InputError(
        f'{setting("models")}: "{name}" is not a model: no baseline, preset, published name, folder or hub id.'
        f"{suggest(name, known)} Baselines: {', '.join(BASELINES)}."
    )


def _folder_name(name: str) -> str:
    path = Path(name).expanduser()
    return path.name or path.resolve().name


def _check_ambiguous(name: str) -> None:
    """A large network would take days from scratch, so its name alone is not enough."""
    if name not in PUBLISHED:
        return
    parameters = sum(weight.numel() for weight in from_preset(name, weights=False).network.parameters())
    if parameters > LARGE:
        raise InputError(
            f'{setting("models")}: "{name}" can mean the published weights or a network trained from scratch. '
            f"Write start:{name} to fine-tune the weights, or preset:{name} to train from scratch."
        )


def _of_model(source: str, name: str, task: str, labels: Sequence[str] | None) -> ModelSpec:
    """A folder or hub model: loaded if it was trained for this task, fine-tuned if it is a pretrained network."""
    about = info(source)
    if about.task is None or TASKS[about.task].language_model:
        return ModelSpec(name, FINE_TUNED, start=source)
    _check_fits(about, name, task, labels)
    return ModelSpec(name, LOADED, start=source)


def _check_fits(about: ModelInfo, name: str, task: str, labels: Sequence[str] | None) -> None:
    pairs = {about.task, TASKS[about.task or ""].pair_task}
    if task not in pairs:
        raise InputError(
            f"{name} is a model for {about.task}, but the data is for {task}. Leave it out, or name the task of the "
            f"data with {setting('task')}."
        )
    if about.labels and labels and TASKS[task].record.type_name in ("classify", "pair"):
        label_mapping(about.labels, labels, model=name, where="the data")
