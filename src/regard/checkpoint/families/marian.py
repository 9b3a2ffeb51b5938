"""Marian translators, and the 2017 Transformer, which is written in their format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regard.checkpoint.families import bart
from regard.checkpoint.families.pegasus import LAYOUT, TABLES, TRANSFORMER_PRENORM, tables
from regard.checkpoint.family import Family, HFConfig, activation_to_hf, require_settings
from regard.config import ModelConfig, PositionConfig

SHARED = "share_encoder_decoder_embeddings"


def read(hf: HFConfig) -> ModelConfig:
    require_settings(hf, static_position_embeddings=True, normalize_embedding=False)
    target = None
    if hf[SHARED]:
        require_settings(hf, decoder_vocab_size=hf["vocab_size"])
    else:
        target = hf["decoder_vocab_size"] or hf["vocab_size"]
    positions = PositionConfig("sinusoidal-halves", max_tokens=hf["max_position_embeddings"])
    return replace(bart.read(hf), positions=positions, embedding_norm=False, target_vocabulary=target)


def write(config: ModelConfig) -> dict[str, Any]:
    pad = min(config.vocabulary, config.output_vocabulary) - 1
    return bart.write(config) | {
        "activation_function": activation_to_hf(config.activation, silu="swish"),
        "decoder_vocab_size": config.output_vocabulary,
        SHARED: config.target_vocabulary is None,
        "bos_token_id": None,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
    }


def read_2017(hf: HFConfig) -> ModelConfig:
    require_settings(hf, sinusoidal_layout="alternating")
    ours = read(hf)
    return replace(ours, positions=replace(ours.positions, kind="sinusoidal"), output="plain", init_std=None)


def write_2017(config: ModelConfig) -> dict[str, Any]:
    return write(config) | {LAYOUT: "alternating"}


def preset_config(vocabulary: int, width: int, layers: int, heads: int) -> ModelConfig:
    """The settings of a preset."""
    return replace(
        bart.preset_config(vocabulary, width, layers, heads),
        positions=PositionConfig("sinusoidal-halves"),
        activation="silu",
        embedding_norm=False,
        embedding_scale=True,
    )


def preset_config_2017(vocabulary: int, width: int, layers: int, heads: int) -> ModelConfig:
    """The settings of a preset."""
    return replace(
        preset_config(vocabulary, width, layers, heads),
        positions=PositionConfig("sinusoidal"),
        activation="relu",
        output="plain",
        init_std=None,
    )


def select_by_json(hf: HFConfig) -> Family:
    """Marian or the 2017 Transformer, with one vocabulary or two."""
    shared = hf.get(SHARED, True)
    if LAYOUT in hf:
        return TRANSFORMER if shared else TRANSFORMER_SEPARATE
    return MARIAN if shared else MARIAN_SEPARATE


def select_by_config(config: ModelConfig) -> Family:
    """Marian with one vocabulary or two."""
    return MARIAN if config.target_vocabulary is None else MARIAN_SEPARATE


def select_2017_by_config(config: ModelConfig) -> Family:
    """The 2017 Transformer with one vocabulary or two, or with norms before each sublayer."""
    if config.norm_first and config.target_vocabulary is None:
        return TRANSFORMER_PRENORM
    return TRANSFORMER if config.target_vocabulary is None else TRANSFORMER_SEPARATE


MARIAN = Family(
    name="marian",
    title="Marian",
    select_by_json=select_by_json,
    select_by_config=select_by_config,
    presets={
        "marian": preset_config(58101, 512, 6, 8),
        "tiny-marian": preset_config(100, 32, 2, 4),
    },
    preset_heads={"language": 0},
    vocabulary_kind="unigram",
    classes={"MarianModel": (), "MarianMTModel": ("language",)},
    defaults={
        **bart.DEFAULTS,
        "vocab_size": 58101,
        "encoder_layers": 12,
        "decoder_layers": 12,
        "scale_embedding": False,
        "decoder_vocab_size": None,
        SHARED: True,
    },
    read=read,
    write=write,
    prefix="model.",
    base=bart.LAYERS,
    heads={"language": bart.LANGUAGE},
    aliases=bart.ALIASES,
    dropped=TABLES,
    optional=("heads.language.bias",),
    extra_tensors=tables,
)
TRANSFORMER = replace(
    MARIAN,
    name="transformer",
    title="Transformer",
    docs="the 2017 Transformer, written with Marian's classes, or with those of Pegasus if it is pre-norm",
    select_by_config=select_2017_by_config,
    presets={
        "transformer-base": preset_config_2017(37000, 512, 6, 8),
        "transformer-small": replace(preset_config_2017(8000, 256, 3, 4), norm_first=True),
        "tiny-transformer": preset_config_2017(100, 32, 2, 4),
    },
    preset_heads={"language": 0},
    vocabulary_kind="unigram",
    model_type="marian",
    read=read_2017,
    write=write_2017,
    heads={"language": {"heads.language.output.weight": "lm_head.weight"}},
    dropped=(*TABLES, "final_logits_bias"),
)


def separate_vocabularies(family: Family) -> Family:
    """The variant for two languages with a vocabulary each; the output is tied to the decoder's embeddings."""
    tokens = {f"{side}.embeddings.tokens": f"{side}.embed_tokens" for side in ("encoder", "decoder")}
    return replace(family, base={**family.base, **tokens}, aliases={"lm_head.weight": "decoder.embed_tokens.weight"})


MARIAN_SEPARATE = separate_vocabularies(MARIAN)
TRANSFORMER_SEPARATE = separate_vocabularies(TRANSFORMER)
