"""Folders of tiny presets with random weights, and changes to their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from regard.checkpoint.families import preset
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.checkpoint.write_folder import write_folder
from regard.model.initialization import initialize
from regard.ragged import Ragged

WEIGHTS = "model.safetensors"
BATCH = Ragged.of([[5, 6, 7, 8], [9]])


def made(name: str, heads: Mapping[str, int] | None = None, **settings: Any) -> Checkpoint:
    """A preset with other heads, every tensor drawn, biases too, so that one in the wrong place shows."""
    chosen = preset(name)
    network = build_on_meta(chosen.config, chosen.heads if heads is None else heads)
    buffers = [path for path, buffer in network.named_buffers() if buffer.is_meta]
    generator = torch.Generator().manual_seed(1)
    set_tensors(network, {path: torch.empty(tensor.shape) for path, tensor in network.named_parameters()})
    initialize(network, chosen.config, generator=generator)
    for parameter in network.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    for path in buffers:
        set_tensors(network, {path: torch.randn(network.get_buffer(path).shape, generator=generator) * 0.1})
    return Checkpoint(chosen.family, chosen.config, network.eval(), **settings)


def written(folder: Path, name: str, heads: Mapping[str, int] | None = None, **settings: Any) -> Path:
    write_folder(folder, made(name, heads, **settings))
    return folder


def change(folder: Path, edit: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    edit(tensors)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / WEIGHTS)


def configure(folder: Path, **settings: Any) -> None:
    config = json.loads((folder / "config.json").read_text()) | settings
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


def same(one: Checkpoint, other: Checkpoint) -> bool:
    left, right = one.network.state_dict(), other.network.state_dict()
    return set(left) == set(right) and all(torch.equal(tensor, right[name]) for name, tensor in left.items())
