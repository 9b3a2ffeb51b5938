"""The small files next to the weights: labels, pooling, generation settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint.family import HFConfig
from regard.checkpoint.files import read_any_json, read_json
from regard.errors import FolderError
from regard.foreign import path_inside

COMPANIONS = (
    "generation_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)


def label_names(hf: HFConfig) -> tuple[str, ...] | None:
    """The names of the classes in order; None if config.json has none."""
    values = hf.get("id2label")
    if not values:
        return None
    if not isinstance(values, dict):
        raise FolderError(f'config.json: "id2label" is {values!r}, expected labels by number.')
    try:
        named = {int(number): str(label) for number, label in values.items()}
    except ValueError as error:
        raise FolderError(f'config.json: a key of "id2label" is not a number: {error}.') from error
    if sorted(named) != list(range(len(named))):
        raise FolderError(f'config.json: "id2label" must number labels from 0 without a gap, not {sorted(named)}.')
    return tuple(named[number] for number in range(len(named)))


def label_count(hf: HFConfig) -> int:
    """The number of classes of a head: of id2label, else num_labels, else two."""
    labels, count = label_names(hf), hf.get("num_labels", 2)
    if labels is None and (type(count) is not int or count < 1):
        raise FolderError(f"config.json: num_labels is {count!r}, expected a whole number of at least 1.")
    return len(labels) if labels else int(count)


def read_companions(folder: Path) -> dict[str, Any]:
    """Small JSON files of the model that are written back unchanged."""
    companions: dict[str, Any] = {}
    for name in COMPANIONS:
        if path_inside(folder, name).exists():
            companions[name] = read_any_json(folder, name)
    modules = companions.get("modules.json", [])
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise FolderError(f"{folder / 'modules.json'} is not a list of modules. Remove it to load without its pooling.")
    for path in (str(module.get("path") or "") for module in modules):
        if path and path_inside(folder, f"{path}/config.json").exists():
            companions[f"{path}/config.json"] = read_json(folder, f"{path}/config.json")
    return companions


MODULES = ("Transformer", "Pooling", "Normalize")  # normalization is an option of `embed`
POOLING = {
    "cls": "first",
    "cls_token": "first",
    "mean": "mean",
    "mean_tokens": "mean",
    "max": "max",
    "max_tokens": "max",
}


def read_pooling(folder: Path, companions: Mapping[str, Any]) -> str | None:
    """The pooling of a sentence-transformers folder; None for other folders."""
    modules = {str(module.get("type", "")).rpartition(".")[2]: module for module in companions.get("modules.json", [])}
    for kind in modules:
        if kind not in MODULES:
            raise FolderError(
                f"{folder}: modules.json has a {kind}, which would change the vectors and is not known here; known are "
                f"{', '.join(MODULES)}. Remove modules.json to load the network without it."
            )
    if "Pooling" not in modules:
        return None
    settings = companions.get(f"{modules['Pooling'].get('path')}/config.json", {})
    modes = [key.removeprefix("pooling_mode_") for key, on in settings.items() if on is True]
    modes = [mode for mode in modes if mode != "include_prompt"]
    if isinstance(settings.get("pooling_mode"), str):
        modes = [settings["pooling_mode"]]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise FolderError(
            f"{folder}: the pooling {' + '.join(modes) or 'of modules.json'} is not known; known are cls, mean and "
            "max. Remove modules.json to load the network without it."
        )
    return POOLING[modes[0]]


def generation_config(config: Mapping[str, Any], heads: Iterable[str]) -> dict[str, Any]:
    """generation_config.json of a network that generates text: its start and end ids."""
    if "language" not in heads:
        return {}
    ids = {key: value for key, value in config.items() if key.endswith("_token_id") and value is not None}
    return {"generation_config.json": {"_from_model_config": True, **ids}}


def tokenizer_ids(config: Mapping[str, Any], special: Mapping[str, int]) -> dict[str, int]:
    """The special ids of a tokenizer, instead of the family's own."""
    roles = {number: special[role] for role in special if type(number := config.get(f"{role}_token_id")) is int}
    values = {key: value for key, value in config.items() if key.endswith("_token_id") and value is not None}
    values = {key: value for key, value in values.items() if not isinstance(value, list | dict)}  # several ends stay
    own = {key: special[key.removesuffix("_token_id")] for key in values if key.removesuffix("_token_id") in special}
    return {key: roles[value] for key, value in values.items() if value in roles} | own
