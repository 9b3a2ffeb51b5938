"""BART (Lewis et al. 2020)."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.family import Family, HFConfig, activation_from_hf, activation_to_hf, require_settings
from regard.checkpoint.names import LeadingAxis, NameTable
from regard.config import AttentionConfig, ModelConfig, PositionConfig

OFFSET = 2  # rows of the position table that are never used
DEFAULTS: HFConfig = {
    "vocab_size": 50265,
    "max_position_embeddings": 1024,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "activation_function": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "init_std": 0.02,
    "scale_embedding": False,
    "tie_word_embeddings": True,
}


def read(hf: HFConfig) -> ModelConfig:
    require_settings(
        hf,
        decoder_ffn_dim=hf["encoder_ffn_dim"],
        decoder_attention_heads=hf["encoder_attention_heads"],
        normalize_before=False,
        add_final_layer_norm=False,
    )
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["d_model"],
        layers=hf["encoder_layers"],
        ffn_width=hf["encoder_ffn_dim"],
        kind="encoder-decoder",
        decoder_layers=hf["decoder_layers"],
        attention=AttentionConfig(hf["encoder_attention_heads"], dropout=hf["attention_dropout"]),
        positions=PositionConfig(max_tokens=hf["max_position_embeddings"], offset=OFFSET),
        activation=activation_from_hf(hf, "activation_function"),
        eps=1e-5,
        embedding_scale=hf["scale_embedding"],
        tied=hf["tie_word_embeddings"],
        output="biased",
        dropout=hf["dropout"],
        init_std=hf["init_std"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    heads = config.attention.heads
    return {
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.max_tokens,
        "d_model": config.width,
        "encoder_layers": config.layers,
        "decoder_layers": config.decoder_layers,
        "encoder_ffn_dim": config.ffn_width,
        "decoder_ffn_dim": config.ffn_width,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "activation_function": activation_to_hf(config.activation),
        "dropout": config.dropout,
        "attention_dropout": config.attention.dropout,
        "init_std": 0.02 if config.init_std is None else config.init_std,
        "scale_embedding": config.embedding_scale,
        "is_encoder_decoder": True,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": 2,
        "tie_word_embeddings": config.tied,
    }


def stack(ours: str) -> NameTable:
    """The layers of an encoder or a decoder."""
    return {
        f"{ours}.layers.{{}}.attention.qkv": tuple(f"{ours}.layers.{{}}.self_attn.{part}_proj" for part in "qkv"),
        f"{ours}.layers.{{}}.attention.out": f"{ours}.layers.{{}}.self_attn.out_proj",
        f"{ours}.layers.{{}}.attention_norm": f"{ours}.layers.{{}}.self_attn_layer_norm",
        f"{ours}.layers.{{}}.feedforward.up": f"{ours}.layers.{{}}.fc1",
        f"{ours}.layers.{{}}.feedforward.down": f"{ours}.layers.{{}}.fc2",
        f"{ours}.layers.{{}}.feedforward_norm": f"{ours}.layers.{{}}.final_layer_norm",
    }


CROSS: NameTable = {
    "decoder.layers.{}.cross.query": "decoder.layers.{}.encoder_attn.q_proj",
    "decoder.layers.{}.cross.memory": (
        "decoder.layers.{}.encoder_attn.k_proj",
        "decoder.layers.{}.encoder_attn.v_proj",
    ),
    "decoder.layers.{}.cross.out": "decoder.layers.{}.encoder_attn.out_proj",
    "decoder.layers.{}.cross_norm": "decoder.layers.{}.encoder_attn_layer_norm",
}
LAYERS: NameTable = {"encoder.embeddings.tokens": "shared", **stack("encoder"), **stack("decoder"), **CROSS}
LANGUAGE: NameTable = {
    "heads.language.output.weight": "lm_head.weight",
    "heads.language.bias": LeadingAxis("final_logits_bias"),
}
ALIASES = {
    "encoder.embed_tokens.weight": "shared.weight",
    "decoder.embed_tokens.weight": "shared.weight",
    "lm_head.weight": "shared.weight",
}


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 1024) -> ModelConfig:
    """The settings of a preset."""
    return ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=4 * width,
        kind="encoder-decoder",
        decoder_layers=layers,
        attention=AttentionConfig(heads),
        positions=PositionConfig(max_tokens=max_tokens, offset=2),
        eps=1e-5,
        output="biased",
    )


BART = Family(
    name="bart",
    title="BART",
    presets={
        "bart-base": preset_config(50265, 768, 6, 12),
        "tiny-bart": preset_config(100, 32, 2, 4, max_tokens=128),
    },
    preset_heads={"language": 0},
    vocabulary_kind="bpe",
    special_tokens="gpt2",
    classes={"BartModel": (), "BartForConditionalGeneration": ("language",)},
    defaults=DEFAULTS,
    read=read,
    write=write,
    prefix="model.",
    base={
        **LAYERS,
        "encoder.embeddings.places": "encoder.embed_positions",
        "encoder.embeddings.norm": "encoder.layernorm_embedding",
        "decoder.embeddings.places": "decoder.embed_positions",
        "decoder.embeddings.norm": "decoder.layernorm_embedding",
    },
    heads={"language": LANGUAGE},
    aliases=ALIASES,
    optional=("heads.language.bias",),
)
