"""Recurrent encoder-decoders of our own: settings and tensors under our names. No other project opens them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from regard.checkpoint.family import Family, Foreign
from regard.config import RecurrentConfig

PARTS = (
    "encoder.tokens",
    "encoder.layers.cells",
    "decoder.layers.cells",
    "decoder.align.score",
    "decoder.align.join",
    "decoder.align.inner",
    "decoder.align.outer",
)
DEFAULTS: Foreign = asdict(RecurrentConfig(vocabulary=8000, width=512, embedding=512))


def read(foreign: Foreign) -> RecurrentConfig:
    return RecurrentConfig(**{field.name: foreign[field.name] for field in fields(RecurrentConfig)})


def write(config: RecurrentConfig) -> dict[str, Any]:
    ends = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return {**asdict(config), "is_encoder_decoder": True, **ends}


RECURRENT = Family(
    name="recurrent",
    model_type="regard-recurrent",
    classes={"Recurrent": (), "RecurrentForTranslation": ("language",)},
    defaults=DEFAULTS,
    read=read,
    write=write,
    base={part: part for part in PARTS},
    heads={"language": {"heads.language": "heads.language"}},
)
