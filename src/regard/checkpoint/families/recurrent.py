"""Recurrent networks of our own: settings and tensors under our names. No other project opens them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from regard.checkpoint.family import Family, HFConfig, require_settings
from regard.config import RecurrentConfig

PARTS = (
    "encoder.tokens",
    "encoder.layers.cells",
    "decoder.tokens",  # if it has a separate vocabulary
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
    "tied",
    "dropout",
)  # settings of a decoder
BOTH_SIDES = ("vocabulary", "width", "embedding_width", "layers", "cell", "tied", "dropout")


def read(hf: HFConfig) -> RecurrentConfig:
    return RecurrentConfig(**{field.name: hf[field.name] for field in fields(RecurrentConfig)})


def write(config: RecurrentConfig) -> dict[str, Any]:
    ends = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return {**asdict(config), "is_encoder_decoder": True, **ends}


def read_language(hf: HFConfig) -> RecurrentConfig:
    require_settings(hf, kind="decoder")
    return read(hf)


def write_language(config: RecurrentConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ALONE} | {"bos_token_id": 0, "eos_token_id": 0}


def read_elmo(hf: HFConfig) -> RecurrentConfig:
    require_settings(hf, kind="encoder")
    return read(hf)


def write_elmo(config: RecurrentConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in BOTH_SIDES}


def preset_config(vocabulary: int, width: int, score: str = "none", **settings: Any) -> RecurrentConfig:
    """The settings of a preset."""
    return RecurrentConfig(vocabulary, width, embedding_width=width, score=score, tied=True, **settings)


RECURRENT = Family(
    name="recurrent",
    docs="GRU and LSTM encoder-decoders; transformers cannot open them",
    presets={
        "gru": preset_config(8000, 512),
        "gru-dot": preset_config(8000, 512, "dot"),
        "gru-bilinear": preset_config(8000, 512, "bilinear"),
        "gru-additive": preset_config(8000, 512, "additive"),
        "gru-local": preset_config(8000, 512, "bilinear", window=5, center="predicted"),
        "gru-feeding": preset_config(8000, 512, "additive", input_feeding=True),
        "gru-mini": preset_config(2000, 128, "additive"),
        "lstm": preset_config(8000, 512, cell="lstm"),
        "lstm-dot": preset_config(8000, 512, "dot", cell="lstm"),
        "lstm-bilinear": preset_config(8000, 512, "bilinear", cell="lstm"),
        "lstm-additive": preset_config(8000, 512, "additive", cell="lstm"),
        "tiny-gru": preset_config(100, 32),
        "tiny-gru-additive": preset_config(100, 32, "additive"),
        "tiny-lstm-feeding": preset_config(100, 32, "bilinear", cell="lstm", input_feeding=True),
    },
    preset_heads={"language": 0},
    vocabulary_kind="unigram",
    model_type="regard-recurrent",
    in_transformers=False,
    classes={"Recurrent": (), "RecurrentForTranslation": ("language",)},
    defaults=asdict(RecurrentConfig(vocabulary=8000, width=512, embedding_width=512)),
    read=read,
    write=write,
    base={part: part for part in PARTS},
    heads=LANGUAGE,
)


def language_preset_config(vocabulary: int, width: int, cell: str, *, layers: int = 2) -> RecurrentConfig:
    """The settings of a preset."""
    return RecurrentConfig(vocabulary, width, embedding_width=width, layers=layers, kind="decoder", cell=cell)


RECURRENT_LANGUAGE = Family(
    name="recurrent-language",
    docs="GRU and LSTM language models; transformers cannot open them",
    presets={
        "gru-characters": language_preset_config(1000, 512, "gru"),
        "lstm-characters": language_preset_config(1000, 512, "lstm"),
        "tiny-lstm-language": language_preset_config(100, 32, "lstm"),
    },
    preset_heads={"language": 0},
    vocabulary_kind="char",
    model_type="regard-recurrent-language",
    in_transformers=False,
    classes={"RecurrentDecoder": (), "RecurrentForLanguage": ("language",)},
    defaults=asdict(RecurrentConfig(vocabulary=1000, width=512, embedding_width=512, kind="decoder")),
    read=read_language,
    write=write_language,
    base={part: part for part in ("decoder.tokens", "decoder.layers.cells")},
    heads=LANGUAGE,
)


def elmo_preset_config(vocabulary: int, side: int, *, layers: int = 2) -> RecurrentConfig:
    """The settings of a preset."""
    return RecurrentConfig(vocabulary, 2 * side, embedding_width=side, layers=layers, kind="encoder", cell="lstm")


ELMO = Family(
    name="elmo",
    title="ELMo",
    docs="a forward and a backward language model; transformers cannot open them",
    presets={
        "elmo-small": elmo_preset_config(8000, 256),
        "tiny-elmo": elmo_preset_config(100, 16),
    },
    preset_heads={"sides": 0},
    model_type="regard-elmo",
    in_transformers=False,
    classes={
        "Elmo": (),
        "ElmoForLanguageModeling": ("sides",),
        "ElmoForSequenceClassification": ("sequence",),
        "ElmoForTokenClassification": ("token",),
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
