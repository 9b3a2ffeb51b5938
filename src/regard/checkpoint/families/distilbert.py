"""DistilBERT (Sanh et al. 2019): BERT without segments and pooler, half as deep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regard.checkpoint.families import bert
from regard.checkpoint.family import Family, HFConfig, activation_from_hf, activation_to_hf
from regard.config import AttentionConfig, ModelConfig, PoolConfig, PositionConfig

DEFAULTS: HFConfig = {
    "vocab_size": 30522,
    "dim": 768,
    "n_layers": 6,
    "n_heads": 12,
    "hidden_dim": 3072,
    "activation": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}


def read(hf: HFConfig) -> ModelConfig:
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["dim"],
        layers=hf["n_layers"],
        ffn_width=hf["hidden_dim"],
        attention=AttentionConfig(hf["n_heads"], dropout=hf["attention_dropout"]),
        positions=PositionConfig(max_tokens=hf["max_position_embeddings"]),
        pool=PoolConfig(activation="relu"),
        activation=activation_from_hf(hf, "activation"),
        tied=hf["tie_word_embeddings"],
        dropout=hf["dropout"],
        init_std=hf["initializer_range"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocabulary,
        "dim": config.width,
        "n_layers": config.layers,
        "n_heads": config.attention.heads,
        "hidden_dim": config.ffn_width,
        "activation": activation_to_hf(config.activation),
        "dropout": config.dropout,
        "attention_dropout": config.attention.dropout,
        "max_position_embeddings": config.max_tokens,
        "initializer_range": 0.02 if config.init_std is None else config.init_std,
        "pad_token_id": 0,
        "tie_word_embeddings": config.tied,
    }


def preset_config(vocabulary: int, width: int, layers: int, heads: int) -> ModelConfig:
    """The settings of a preset."""
    return replace(bert.preset_config(vocabulary, width, layers, heads), segments=0, pool=PoolConfig(activation="relu"))


DISTILBERT = Family(
    name="distilbert",
    title="DistilBERT",
    presets={
        "distilbert-base": preset_config(30522, 768, 6, 12),
        "tiny-distilbert": preset_config(100, 32, 2, 4),
    },
    classes={
        "DistilBertModel": (),
        "DistilBertForMaskedLM": ("masked",),
        "DistilBertForSequenceClassification": ("sequence",),
        "DistilBertForTokenClassification": ("token",),
        "DistilBertForQuestionAnswering": ("span",),
    },
    defaults=DEFAULTS,
    read=read,
    write=write,
    prefix="distilbert.",
    base={
        "encoder.embeddings.tokens": "embeddings.word_embeddings",
        "encoder.embeddings.places": "embeddings.position_embeddings",
        "encoder.embeddings.norm": "embeddings.LayerNorm",
        "encoder.layers.{}.attention.qkv": (
            "transformer.layer.{}.attention.q_lin",
            "transformer.layer.{}.attention.k_lin",
            "transformer.layer.{}.attention.v_lin",
        ),
        "encoder.layers.{}.attention.out": "transformer.layer.{}.attention.out_lin",
        "encoder.layers.{}.attention_norm": "transformer.layer.{}.sa_layer_norm",
        "encoder.layers.{}.feedforward.up": "transformer.layer.{}.ffn.lin1",
        "encoder.layers.{}.feedforward.down": "transformer.layer.{}.ffn.lin2",
        "encoder.layers.{}.feedforward_norm": "transformer.layer.{}.output_layer_norm",
    },
    heads={
        "masked": {
            "heads.masked.transform.dense": "vocab_transform",
            "heads.masked.transform.norm": "vocab_layer_norm",
            "heads.masked.output": "vocab_projector",
        },
        "sequence": {"heads.pooled.transform.dense": "pre_classifier", "heads.sequence.output": "classifier"},
        "token": {"heads.token.output": "classifier"},
        "span": {"heads.span.output": "qa_outputs"},
    },
    aliases={"vocab_projector.weight": "embeddings.word_embeddings.weight"},
    dropped=("embeddings.position_ids",),
)
