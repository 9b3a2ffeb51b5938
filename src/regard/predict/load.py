"""A model by name."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import torch

from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import from_preset, is_preset, open_checkpoint
from regard.device import pick_device, pick_dtype
from regard.errors import UntrainedWarning
from regard.export.engines import check_engine, resolve_engine
from regard.predict.info import ModelInfo
from regard.predict.model import Model
from regard.text.tokenizer import Tokenizer


def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str | torch.dtype = "fp32",
    revision: str | None = None,
    compile: bool = False,
    engine: str = "auto",
) -> Model:
    """A trained model by name: a folder, `minilm`, a hub id such as `organization/model`, or a published name (`gpt2`).

    A published name always means its published weights, from the hub or its cache; `regard.create` makes an untrained
    network of that shape. Nothing else is downloaded. `compile` trades a minute at the first call for speed on a GPU
    after it. `engine` is what computes: "torch" in `dtype`, "int8" (8-bit integer products on the CPU), or "auto":
    torch, unless `regard compress` recorded another one in the folder.
    """
    check_engine(engine)
    checkpoint, folder = open_checkpoint(name, dtype=pick_dtype(dtype), revision=revision)
    tokenizer = _read_tokenizer(folder)
    checkpoint.network.to(pick_device(device))
    if checkpoint.untrained:
        warnings.warn(
            f"{folder} is untrained: its weights are randomly initialized, so what it computes means nothing yet. "
            "Train it with regard train or regard pretrain.",
            UntrainedWarning,
            stacklevel=2,
        )
    chosen = resolve_engine(engine, folder, pick_device(device).type)
    model = Model(checkpoint, tokenizer, folder=folder, compile=compile, engine=chosen)
    model.open_engine()
    return model


def info(name: str | Path, *, revision: str | None = None) -> ModelInfo:
    """What a model is, from its settings and headers alone: no weight is read.

    Of the name of a shape it gives the numbers of the shape, and nothing is downloaded.
    """
    if is_preset(name) and revision is None:
        shape = Model(from_preset(str(name), weights=False)).info()
        return replace(shape, weights="not read", note=_shape_note(str(name)))
    checkpoint, folder = open_checkpoint(name, revision=revision, weights=False)
    return Model(checkpoint, _read_tokenizer(folder), folder=folder).info()


def _shape_note(name: str) -> str:
    if name not in PUBLISHED:
        return f"numbers of the shape alone; no weights were published for it (untrained: --preset {name})"
    return f"numbers of the published shape; its weights ({PUBLISHED[name]} on the hub) were not read"


def _read_tokenizer(folder: Path | None) -> Tokenizer | None:
    """The tokenizer of a folder that holds one, its files inside it like all others."""
    if folder is None or not Tokenizer.exists(folder):
        return None
    return Tokenizer.load(folder)
