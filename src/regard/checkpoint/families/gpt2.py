"""GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.family import Family, HFConfig, activation_from_hf, activation_to_hf, require_settings
from regard.checkpoint.names import Transposed
from regard.config import AttentionConfig, ModelConfig, PositionConfig

DEFAULTS: HFConfig = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02,
    "tie_word_embeddings": True,
}


def read(hf: HFConfig) -> ModelConfig:
    require_settings(hf, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["n_embd"],
        layers=hf["n_layer"],
        ffn_width=hf["n_inner"] or 4 * hf["n_embd"],
        kind="decoder",
        attention=AttentionConfig(hf["n_head"], dropout=hf["attn_pdrop"]),
        positions=PositionConfig(max_tokens=hf["n_positions"]),
        activation=activation_from_hf(hf, "activation_function"),
        norm_first=True,
        eps=hf["layer_norm_epsilon"],
        embedding_norm=False,
        tied=hf["tie_word_embeddings"],
        dropout=hf["resid_pdrop"],
        init_std=hf["initializer_range"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    last = config.vocabulary - 1  # <|endoftext|> closes the vocabulary
    return {
        "vocab_size": config.vocabulary,
        "n_positions": config.max_tokens,
        "n_embd": config.width,
        "n_layer": config.layers,
        "n_head": config.attention.heads,
        "n_inner": None if config.ffn_width == 4 * config.width else config.ffn_width,
        "activation_function": activation_to_hf(config.activation),
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention.dropout,
        "layer_norm_epsilon": config.eps,
        "initializer_range": 0.02 if config.init_std is None else config.init_std,
        "bos_token_id": last,
        "eos_token_id": last,
        "tie_word_embeddings": config.tied,
    }


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 1024) -> ModelConfig:
    """The settings of a preset."""
    return ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=4 * width,
        kind="decoder",
        attention=AttentionConfig(heads, dropout=0.1),
        positions=PositionConfig(max_tokens=max_tokens),
        activation="gelu-tanh",
        norm_first=True,
        eps=1e-5,
        embedding_norm=False,
    )


GPT2 = Family(
    name="gpt2",
    title="GPT-2",
    presets={
        "gpt2": preset_config(50257, 768, 12, 12),
        "gpt2-mini": preset_config(8000, 384, 6, 6, max_tokens=256),
        "tiny-gpt2": preset_config(100, 32, 2, 4, max_tokens=128),
    },
    preset_heads={"language": 0},
    vocabulary_kind="bpe",
    special_tokens="gpt2",
    classes={"GPT2Model": (), "GPT2LMHeadModel": ("language",)},
    defaults=DEFAULTS,
    read=read,
    write=write,
    prefix="transformer.",
    base={
        "decoder.embeddings.tokens": "wte",
        "decoder.embeddings.places": "wpe",
        "decoder.layers.{}.attention_norm": "h.{}.ln_1",
        "decoder.layers.{}.attention.qkv": Transposed("h.{}.attn.c_attn"),
        "decoder.layers.{}.attention.out": Transposed("h.{}.attn.c_proj"),
        "decoder.layers.{}.feedforward_norm": "h.{}.ln_2",
        "decoder.layers.{}.feedforward.up": Transposed("h.{}.mlp.c_fc"),
        "decoder.layers.{}.feedforward.down": Transposed("h.{}.mlp.c_proj"),
        "decoder.norm": "ln_f",
    },
    heads={"language": {"heads.language.output.weight": "lm_head.weight"}},
    aliases={"lm_head.weight": "wte.weight"},
    dropped=("h.*.attn.bias", "h.*.attn.masked_bias"),
)
