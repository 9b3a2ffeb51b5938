"""Untrained models from presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from regard.checkpoint.families import preset
from regard.checkpoint.source import from_preset
from regard.config import Config, ModelConfig
from regard.device import pick_device, pick_dtype
from regard.errors import InputError, did_you_mean
from regard.predict.model import Model
from regard.text.tokenizer import Tokenizer


def create(
    shape: str,
    *,
    tokenizer: str | Path | Tokenizer | None = None,
    heads: Mapping[str, int] | None = None,
    seed: int = 0,
    device: str = "auto",
    dtype: str | torch.dtype = "fp32",
    **settings: Any,
) -> Model:
    """An untrained model of a known shape: its weights are randomly initialized from `seed`.

    shape: the name of a preset, such as "bert-tiny"; docs/families.md lists them.
    tokenizer: a tokenizer or its folder; the vocabulary becomes as large as its. Without one the model reads ids only.
    heads: other heads than the shape has, with their number of classes: {"sequence": 3}, {"masked": 0, "next": 2}.
    settings: fields of `regard.config.ModelConfig` to change, such as layers=4. Positions can be given by their kind,
        positions="rotary", and attention as a dict of what changes, attention={"heads": 1, "score": "dot"}.

    Until it is trained, everything that is said about it says "untrained", also after it was saved and loaded.
    """
    words = tokenizer if isinstance(tokenizer, Tokenizer) or tokenizer is None else Tokenizer.load(tokenizer)
    if words is not None:
        settings.setdefault("vocabulary", words.size)
        if words.target is not None:
            settings.setdefault("target_vocabulary", words.target.size)
    known = [field.name for field in fields(preset(shape).config)]
    for name in settings:
        if name not in known:
            raise InputError(f'"{name}" is not a setting of this network.{did_you_mean(name, known)}')
    settings = _with_nested(preset(shape).config, settings)
    checkpoint = from_preset(shape, dtype=pick_dtype(dtype), seed=seed, heads=heads, **settings)
    if words is not None:
        from regard.training.from_scratch.preset_model import with_special_token_ids

        checkpoint = with_special_token_ids(replace(checkpoint, special_ids=words.output_tokenizer.special), words)
    checkpoint.network.to(pick_device(device))
    return Model(checkpoint, words)


def _with_nested(config: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with short forms replaced: a kind of positions, a dict of changes of the attention."""
    values = dict(settings)
    if isinstance(config, ModelConfig) and isinstance(values.get("positions"), str):
        values["positions"] = replace(config.positions, kind=values["positions"])
    if isinstance(config, ModelConfig) and isinstance(values.get("attention"), Mapping):
        known = [field.name for field in fields(config.attention)]
        for name in values["attention"]:
            if name not in known:
                raise InputError(f'"{name}" is not a setting of attention.{did_you_mean(name, known)}')
        values["attention"] = replace(config.attention, **values["attention"])
    return values
