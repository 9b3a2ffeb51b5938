"""Pegasus (Zhang et al. 2020), and the Transformer with norms before each sublayer, which is written in its format.

Pegasus is BART with norms before each sublayer and after the last one, and with fixed positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.checkpoint.families import bart
from regard.checkpoint.family import Family, HFConfig, require_settings
from regard.config import ModelConfig, PositionConfig

if TYPE_CHECKING:  # the command line reads the families without torch
    from torch import Tensor

TABLES = ("encoder.embed_positions.weight", "decoder.embed_positions.weight")
LAYOUT = "sinusoidal_layout"  # our key in config.json: where sines and cosines alternate


def read(hf: HFConfig) -> ModelConfig:
    require_settings(
        hf,
        normalize_before=True,
        add_final_layer_norm=True,
        normalize_embedding=False,
        static_position_embeddings=True,
    )
    positions = PositionConfig("sinusoidal-halves", max_tokens=hf["max_position_embeddings"])
    base = bart.read({**hf, "normalize_before": False, "add_final_layer_norm": False})
    return replace(base, positions=positions, embedding_norm=False, norm_first=True)


def write(config: ModelConfig) -> dict[str, Any]:
    return bart.write(config) | {
        "bos_token_id": None,
        "eos_token_id": 1,
        "forced_eos_token_id": 1,
        "pad_token_id": 0,
        "decoder_start_token_id": 0,
    }


def read_alternating(hf: HFConfig) -> ModelConfig:
    require_settings(hf, sinusoidal_layout="alternating")
    ours = read(hf)
    return replace(ours, positions=replace(ours.positions, kind="sinusoidal"), output="plain", init_std=None)


def write_alternating(config: ModelConfig) -> dict[str, Any]:
    return write(config) | {LAYOUT: "alternating"}


def tables(config: ModelConfig) -> Mapping[str, Tensor]:
    """The fixed position tables, for libraries that load them instead of computing sines and cosines in halves."""
    from regard.model.positions import sinusoidal

    table = sinusoidal(config.max_tokens or 0, config.width, halves=config.positions.kind == "sinusoidal-halves")
    return {name: table.clone() for name in TABLES}


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 512) -> ModelConfig:
    """The settings of a preset."""
    return replace(
        bart.preset_config(vocabulary, width, layers, heads),
        positions=PositionConfig("sinusoidal-halves", max_tokens=max_tokens),
        activation="relu",
        embedding_norm=False,
        embedding_scale=True,
        norm_first=True,
    )


def select_by_json(hf: HFConfig) -> Family:
    """Pegasus, or the Transformer with norms before each sublayer."""
    return TRANSFORMER_PRENORM if LAYOUT in hf else PEGASUS


PEGASUS = Family(
    name="pegasus",
    title="Pegasus",
    select_by_json=select_by_json,
    presets={
        "pegasus-large": preset_config(96103, 1024, 16, 16),
        "tiny-pegasus": preset_config(100, 32, 2, 4, max_tokens=128),
    },
    preset_heads={"language": 0},
    vocabulary_kind="unigram",
    classes={"PegasusModel": (), "PegasusForConditionalGeneration": ("language",)},
    defaults=bart.DEFAULTS,
    read=read,
    write=write,
    prefix="model.",
    base={**bart.LAYERS, "encoder.norm": "encoder.layer_norm", "decoder.norm": "decoder.layer_norm"},
    heads={"language": bart.LANGUAGE},
    aliases=bart.ALIASES,
    dropped=TABLES,
    optional=("heads.language.bias",),
    extra_tensors=tables,
)
TRANSFORMER_PRENORM = replace(
    PEGASUS,
    name="transformer",
    title="Transformer",
    model_type="pegasus",
    presets={},
    read=read_alternating,
    write=write_alternating,
    heads={"language": {"heads.language.output.weight": "lm_head.weight"}},
    dropped=(*TABLES, "final_logits_bias"),
)
