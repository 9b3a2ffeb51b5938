"""Llama (Touvron et al. 2023): rotary, RMSNorm, SwiGLU, grouped keys and values."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.family import Family, HFConfig, require_settings, rope_parameters, rotary_config
from regard.config import AttentionConfig, ModelConfig, PositionConfig

DEFAULTS: HFConfig = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "head_dim": None,
    "max_position_embeddings": 2048,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
}


def read(hf: HFConfig) -> ModelConfig:
    require_settings(hf, hidden_act="silu", attention_bias=False, mlp_bias=False, partial_rotary_factor=1.0)
    heads, width = hf["num_attention_heads"], hf["hidden_size"]
    rope = dict(hf.get("rope_parameters") or hf.get("rope_scaling") or {})
    rope.setdefault("rope_theta", hf.get("rope_theta", 10000.0))
    head_width = hf["head_dim"]
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=width,
        layers=hf["num_hidden_layers"],
        ffn_width=hf["intermediate_size"],
        kind="decoder",
        attention=AttentionConfig(
            heads,
            kv_heads=hf["num_key_value_heads"] or heads,
            head_width=None if head_width is None or head_width * heads == width else head_width,
            dropout=hf["attention_dropout"],
        ),
        positions=rotary_config(rope, hf["max_position_embeddings"]),
        activation="swiglu",
        norm="rms",
        norm_first=True,
        eps=hf["rms_norm_eps"],
        bias=False,
        embedding_norm=False,
        tied=hf["tie_word_embeddings"],
        dropout=0.0,
        init_std=hf["initializer_range"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "intermediate_size": config.ffn_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.attention.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": config.max_tokens,
        "initializer_range": 0.02 if config.init_std is None else config.init_std,
        "rms_norm_eps": config.eps,
        "attention_dropout": config.attention.dropout,
        "rope_parameters": rope_parameters(config.positions),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": config.tied,
    }


def preset_config(
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    *,
    kv_heads: int,
    ffn_width: int,
    max_tokens: int = 2048,
    tied: bool = False,
) -> ModelConfig:
    """The settings of a preset."""
    return ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width,
        kind="decoder",
        attention=AttentionConfig(heads, kv_heads=kv_heads),
        positions=PositionConfig("rotary", max_tokens=max_tokens),
        activation="swiglu",
        norm="rms",
        norm_first=True,
        eps=1e-6,
        bias=False,
        embedding_norm=False,
        tied=tied,
        dropout=0.0,
    )


LLAMA = Family(
    name="llama",
    title="Llama",
    presets={
        "llama-micro": preset_config(8000, 128, 4, 4, kv_heads=4, ffn_width=352, max_tokens=256, tied=True),
        "tiny-llama": preset_config(100, 32, 2, 4, kv_heads=2, ffn_width=64),
    },
    preset_heads={"language": 0},
    vocabulary_kind="bpe",
    special_tokens="gpt2",
    classes={"LlamaModel": (), "LlamaForCausalLM": ("language",)},
    defaults=DEFAULTS,
    read=read,
    write=write,
    prefix="model.",
    base={
        "decoder.embeddings.tokens": "embed_tokens",
        "decoder.layers.{}.attention_norm": "layers.{}.input_layernorm",
        "decoder.layers.{}.attention.qkv": (
            "layers.{}.self_attn.q_proj",
            "layers.{}.self_attn.k_proj",
            "layers.{}.self_attn.v_proj",
        ),
        "decoder.layers.{}.attention.out": "layers.{}.self_attn.o_proj",
        "decoder.layers.{}.feedforward_norm": "layers.{}.post_attention_layernorm",
        "decoder.layers.{}.feedforward.up": ("layers.{}.mlp.gate_proj", "layers.{}.mlp.up_proj"),
        "decoder.layers.{}.feedforward.down": "layers.{}.mlp.down_proj",
        "decoder.norm": "norm",
    },
    heads={"language": {"heads.language.output.weight": "lm_head.weight"}},
    aliases={"lm_head.weight": "embed_tokens.weight"},
    dropped=("layers.*.self_attn.rotary_emb.inv_freq",),
)
