"""ModernBERT (Warner et al. 2024): rotary, pre-norm, gated, most layers local."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.family import (
    Family,
    HFConfig,
    activation_from_hf,
    activation_to_hf,
    require_settings,
    rope_parameters,
    rotary_config,
)
from regard.config import AttentionConfig, ModelConfig, PoolConfig, PositionConfig
from regard.errors import FolderError, did_you_mean

GATES = {"gelu": "geglu", "gelu-tanh": "geglu-tanh", "silu": "swiglu"}
POOLINGS = {"cls": "first", "mean": "mean"}
DEFAULTS: HFConfig = {
    "vocab_size": 50368,
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 22,
    "num_attention_heads": 12,
    "hidden_activation": "gelu",
    "max_position_embeddings": 8192,
    "initializer_range": 0.02,
    "norm_eps": 1e-5,
    "global_attn_every_n_layers": 3,
    "local_attention": 128,
    "attention_dropout": 0.0,
    "embedding_dropout": 0.0,
    "classifier_pooling": "cls",
    "classifier_activation": "gelu",
    "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0,
    "pad_token_id": 50283,
    "tie_word_embeddings": True,
}


def layer_types(every: int, depth: int) -> list[str]:
    """Their word for each layer: each n-th from the first looks everywhere, with 0 none does."""
    return ["full_attention" if every and i % every == 0 else "sliding_attention" for i in range(depth)]


def global_every(hf: HFConfig) -> int:
    """Each which layer is global."""
    kinds, depth = hf.get("layer_types"), hf["num_hidden_layers"]
    every = hf["global_attn_every_n_layers"]
    if not kinds:
        if every < 1:
            raise FolderError(f"config.json: global_attn_every_n_layers is {every}, expected at least 1.")
        return int(every)
    full = [i for i, kind in enumerate(kinds) if kind == "full_attention"]
    if len(full) > 1:
        every = full[1]
    else:
        every = len(kinds) if full else 0
    if len(kinds) != depth or kinds != layer_types(every, depth):
        raise FolderError(
            f"config.json: layer_types is {kinds}, but is read only where, of {depth} layers, each n-th from the first "
            'is "full_attention" and the others are "sliding_attention".'
        )
    return every


def read(hf: HFConfig) -> ModelConfig:
    require_settings(
        hf, attention_bias=False, mlp_bias=False, norm_bias=False, classifier_bias=False, decoder_bias=True
    )
    gate, pooling = activation_from_hf(hf, "hidden_activation"), hf["classifier_pooling"]
    if gate not in GATES:
        raise FolderError(f'config.json: hidden_activation "{hf["hidden_activation"]}" has no gated form here.')
    if pooling not in POOLINGS:
        raise FolderError(f'config.json: classifier_pooling "{pooling}" is not known.{did_you_mean(pooling, POOLINGS)}')
    rope = hf.get("rope_parameters") or {}
    wide = rope.get("full_attention") or {"rope_theta": hf["global_rope_theta"]}
    near = rope.get("sliding_attention") or {"rope_theta": hf["local_rope_theta"]}
    require_settings(near, rope_type="default")
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["hidden_size"],
        layers=hf["num_hidden_layers"],
        ffn_width=hf["intermediate_size"],
        attention=AttentionConfig(
            hf["num_attention_heads"],
            window=hf["local_attention"] // 2,
            global_every=global_every(hf),
            dropout=hf["attention_dropout"],
        ),
        positions=rotary_config(wide, hf["max_position_embeddings"], local_theta=near["rope_theta"]),
        pool=PoolConfig(
            pooling=POOLINGS[pooling],
            activation=activation_from_hf(hf, "classifier_activation"),
            norm=True,
            bias=False,
            transform_tokens=True,
        ),
        activation=GATES[gate],
        norm_first=True,
        eps=hf["norm_eps"],
        bias=False,
        tied=hf["tie_word_embeddings"],
        dropout=hf["embedding_dropout"],
        init_std=hf["initializer_range"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    attention, positions = config.attention, config.positions
    gate = {gated: plain for plain, gated in GATES.items()}.get(config.activation, config.activation)
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "intermediate_size": config.ffn_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": attention.heads,
        "hidden_activation": activation_to_hf(gate),
        "max_position_embeddings": config.max_tokens,
        "initializer_range": 0.02 if config.init_std is None else config.init_std,
        "norm_eps": config.eps,
        "global_attn_every_n_layers": attention.global_every,
        "layer_types": layer_types(attention.global_every, config.layers),
        "local_attention": 2 * (attention.window or 0),
        "attention_dropout": attention.dropout,
        "embedding_dropout": config.dropout,
        "mlp_dropout": config.dropout,
        "classifier_pooling": "mean" if config.pool.pooling == "mean" else "cls",
        "classifier_activation": activation_to_hf(config.pool.activation),
        "rope_parameters": {
            "full_attention": rope_parameters(positions),
            "sliding_attention": {"rope_theta": positions.local_theta or positions.theta, "rope_type": "default"},
        },
        "pad_token_id": 50283 if config.vocabulary > 50283 else 0,
        "bos_token_id": 50281 if config.vocabulary > 50283 else None,
        "eos_token_id": 50282 if config.vocabulary > 50283 else None,
        "cls_token_id": 50281 if config.vocabulary > 50283 else None,
        "sep_token_id": 50282 if config.vocabulary > 50283 else None,
        "tie_word_embeddings": config.tied,
    }


def preset_config(
    vocabulary: int, width: int, layers: int, heads: int, *, ffn_width: int, window: int = 64
) -> ModelConfig:
    """The settings of a preset."""
    return ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width,
        attention=AttentionConfig(heads, window=window, global_every=3),
        positions=PositionConfig("rotary", max_tokens=8192, theta=160000.0, local_theta=10000.0),
        pool=PoolConfig(activation="gelu", norm=True, bias=False, transform_tokens=True),
        activation="geglu",
        norm_first=True,
        eps=1e-5,
        bias=False,
        dropout=0.0,
    )


MODERNBERT = Family(
    name="modernbert",
    title="ModernBERT",
    presets={
        "modernbert-base": preset_config(50368, 768, 22, 12, ffn_width=1152),
        "tiny-modernbert": preset_config(100, 32, 4, 4, ffn_width=48, window=4),
    },
    vocabulary_kind="bpe",
    special_tokens="bert",
    classes={
        "ModernBertModel": (),
        "ModernBertForMaskedLM": ("masked",),
        "ModernBertForSequenceClassification": ("sequence",),
        "ModernBertForTokenClassification": ("token",),
        "ModernBertForQuestionAnswering": ("span",),
    },
    defaults=DEFAULTS,
    read=read,
    write=write,
    prefix="model.",
    base={
        "encoder.embeddings.tokens": "embeddings.tok_embeddings",
        "encoder.embeddings.norm": "embeddings.norm",
        "encoder.layers.{}.attention.qkv": "layers.{}.attn.Wqkv",
        "encoder.layers.{}.attention.out": "layers.{}.attn.Wo",
        "encoder.layers.{}.attention_norm": "layers.{}.attn_norm",
        "encoder.layers.{}.feedforward.up": "layers.{}.mlp.Wi",
        "encoder.layers.{}.feedforward.down": "layers.{}.mlp.Wo",
        "encoder.layers.{}.feedforward_norm": "layers.{}.mlp_norm",
        "encoder.norm": "final_norm",
    },
    heads={
        "masked": {
            "heads.masked.transform.dense": "head.dense",
            "heads.masked.transform.norm": "head.norm",
            "heads.masked.output": "decoder",
        },
        "sequence": {
            "heads.pooled.transform.dense": "head.dense",
            "heads.pooled.transform.norm": "head.norm",
            "heads.sequence.output": "classifier",
        },
        "token": {
            "heads.token.transform.dense": "head.dense",
            "heads.token.transform.norm": "head.norm",
            "heads.token.output": "classifier",
        },
        "span": {
            "heads.span.transform.dense": "head.dense",
            "heads.span.transform.norm": "head.norm",
            "heads.span.output": "classifier",
        },
    },
    aliases={"decoder.weight": "embeddings.tok_embeddings.weight"},
)
