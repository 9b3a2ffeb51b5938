"""The small files beside the weights: labels, pooling, generation settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint.family import Foreign
from regard.checkpoint.files import inside
from regard.errors import FolderError

COMPANIONS = (
    "generation_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)


def labels_of(foreign: Foreign) -> tuple[str, ...] | None:
    """Labels by number."""
    given = foreign.get("id2label")
    if not isinstance(given, dict):
        return None
    try:
        named = {int(number): str(label) for number, label in given.items()}
    except ValueError as error:
        raise FolderError(f'config.json: a key of "id2label" is not a number: {error}.') from error
    if sorted(named) != list(range(len(named))):
        raise FolderError(f'config.json: "id2label" must number labels from 0 without a gap, not {sorted(named)}.')
    return tuple(named[number] for number in range(len(named)))


def read_companions(folder: Path) -> dict[str, Any]:
    """Small JSON files beside the weights that belong to the model and are written back as they are."""
    found: dict[str, Any] = {}
    for name in COMPANIONS:
        if inside(folder, name).exists():
            found[name] = _any_json(folder, name)
    for module in found.get("modules.json") or []:
        name = f"{module.get('path', '')}/config.json".lstrip("/") if isinstance(module, dict) else ""
        if "/" in name and inside(folder, name).exists():
            found[name] = _any_json(folder, name)
    return found


def _any_json(folder: Path, name: str) -> Any:
    try:
        return json.loads(inside(folder, name).read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:
        raise FolderError(f"{folder / name} is not JSON: {error}.") from error


POOLING = {
    "cls": "first",
    "cls_token": "first",
    "mean": "mean",
    "mean_tokens": "mean",
    "max": "max",
    "max_tokens": "max",
}


def pooling_of(folder: Path, companions: Mapping[str, Any]) -> str | None:
    """How a sentence-transformers folder makes one vector of a text; None where the folder is not one."""
    for module in companions.get("modules.json") or []:
        if not str(module.get("type", "")).endswith("Pooling"):
            continue
        settings = companions.get(f"{module.get('path')}/config.json", {})
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
    return None


def generation_config(config: Mapping[str, Any], heads: Iterable[str]) -> dict[str, Any]:
    """generation_config.json for networks that generate: the ids where it starts and stops."""
    if "language" not in heads:
        return {}
    kept = {key: value for key, value in config.items() if key.endswith("_token_id") and value is not None}
    return {"generation_config.json": {"_from_model_config": True, **kept}}
