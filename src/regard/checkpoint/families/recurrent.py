"""Recurrent networks of our own: settings and tensors under our names. No other project opens them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from regard.checkpoint.family import Family, HFConfig, require_settings
from regard.config import RecurrentConfig

PARTS = (
    "encoder.tokens",
    "encoder.layers.cells",
    "decoder.tokens",  # where it has words of its own
    "decoder.layers.cells",
    "decoder.align.score",
    "decoder.align.join",
    "decoder.align.inner",
    "decoder.align.outer",
)
LANGUAGE = {"language": {"heads.language": "heads.language"}}
ALONE = (
    "vocabulary",
    "width",
    "embedding_width",
    "layers",
    "cell",
    "sampling",
    "tied",
    "dropout",
)  # settings of a decoder
BOTH_SIDES = ("vocabulary", "width", "embedding_width", "layers", "cell", "tied", "dropout")


def read(foreign: HFConfig) -> RecurrentConfig:
    return RecurrentConfig(**{field.name: foreign[field.name] for field in fields(RecurrentConfig)})


def write(config: RecurrentConfig) -> dict[str, Any]:
    ends = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return {**asdict(config), "is_encoder_decoder": True, **ends}


def read_language(foreign: HFConfig) -> RecurrentConfig:
    require_settings(foreign, kind="decoder")
    return read(foreign)


def write_language(config: RecurrentConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ALONE} | {"bos_token_id": 0, "eos_token_id": 0}


def read_elmo(foreign: HFConfig) -> RecurrentConfig:
    require_settings(foreign, kind="encoder")
    return read(foreign)


def write_elmo(config: RecurrentConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in BOTH_SIDES}


RECURRENT = Family(
    name="recurrent",
    model_type="regard-recurrent",
    in_transformers=False,
    classes={"Recurrent": (), "RecurrentForTranslation": ("language",)},
    defaults=asdict(RecurrentConfig(vocabulary=8000, width=512, embedding_width=512)),
    read=read,
    write=write,
    base={part: part for part in PARTS},
    heads=LANGUAGE,
)
RECURRENT_LANGUAGE = Family(
    name="recurrent-language",
    model_type="regard-recurrent-language",
    in_transformers=False,
    classes={"RecurrentDecoder": (), "RecurrentForLanguage": ("language",)},
    defaults=asdict(RecurrentConfig(vocabulary=1000, width=512, embedding_width=512, kind="decoder")),
    read=read_language,
    write=write_language,
    base={part: part for part in ("decoder.tokens", "decoder.layers.cells")},
    heads=LANGUAGE,
)
ELMO = Family(
    name="elmo",
    model_type="regard-elmo",
    in_transformers=False,
    classes={
        "TwoSided": (),
        "TwoSidedForLanguage": ("sides",),
        "TwoSidedForSequenceClassification": ("sequence",),
        "TwoSidedForTokenClassification": ("token",),
    },
    defaults=asdict(
        RecurrentConfig(vocabulary=8000, width=512, embedding_width=256, layers=2, kind="encoder", cell="lstm")
    ),
    read=read_elmo,
    write=write_elmo,
    base={"encoder.tokens": "encoder.tokens"}
    | {(name := f"encoder.{side}.{{}}.cells"): name for side in ("ahead", "back")},
    heads={
        "sides": {"heads.sides": "heads.sides"},
        "mix": {"heads.mix": "heads.mix"},
        "sequence": {"heads.sequence.output": "heads.sequence.output"},
        "token": {"heads.token.output": "heads.token.output"},
    },
)
