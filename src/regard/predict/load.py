"""A model by name."""

from __future__ import annotations

from pathlib import Path

import torch

from regard.checkpoint.source import open_checkpoint
from regard.device import pick_device, pick_dtype
from regard.predict.info import Info
from regard.predict.model import Model
from regard.text.tokenizer import Tokenizer


def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str | torch.dtype = "fp32",
    revision: str | None = None,
    compile: bool = False,
) -> Model:
    """A model by name: a folder, a preset (untrained), `minilm`, or a hub id such as `organisation/model`.

    Nothing is downloaded but for a hub id. `compile` trades a minute at the first call for speed on a GPU after it.
    """
    checkpoint, folder = open_checkpoint(name, dtype=pick_dtype(dtype), revision=revision)
    tokenizer = _read_tokenizer(folder)
    checkpoint.network.to(pick_device(device))
    return Model(checkpoint, tokenizer, folder=folder, compile=compile)


def info(name: str | Path, *, revision: str | None = None) -> Info:
    """What a model is, from its settings and headers alone: no weight is read."""
    checkpoint, folder = open_checkpoint(name, revision=revision, weights=False)
    return Model(checkpoint, _read_tokenizer(folder), folder=folder).info()


def _read_tokenizer(folder: Path | None) -> Tokenizer | None:
    """The tokenizer of a folder that holds one, its files inside it like all others."""
    if folder is None or not Tokenizer.present(folder):
        return None
    return Tokenizer.load(folder)
