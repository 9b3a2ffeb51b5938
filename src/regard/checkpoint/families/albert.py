"""ALBERT (Lan et al. 2020): factorised embeddings and layers that share their weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regard.checkpoint.families import bert
from regard.checkpoint.family import Family, HFConfig, require_settings
from regard.config import AttentionConfig, ModelConfig

GROUP = "encoder.albert_layer_groups.{}.albert_layers.0."


def read(hf: HFConfig) -> ModelConfig:
    require_settings(hf, inner_group_num=1)
    return replace(
        bert.read(hf),
        embedding_width=hf["embedding_size"],
        distinct_layers=hf["num_hidden_groups"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    return bert.write(config) | {
        "embedding_size": config.embedding_width,
        "num_hidden_groups": config.distinct_layers or config.layers,
        "inner_group_num": 1,
        "bos_token_id": 2,
        "eos_token_id": 3,
    }


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, embedding_width: int) -> ModelConfig:
    """The settings of a preset."""
    return replace(
        bert.preset_config(vocabulary, width, layers, heads),
        attention=AttentionConfig(heads),
        embedding_width=embedding_width,
        activation="gelu-tanh",
        distinct_layers=1,
        dropout=0.0,
    )


ALBERT = Family(
    name="albert",
    title="ALBERT",
    presets={
        "albert-base": preset_config(30000, 768, 12, 12, embedding_width=128),
        "tiny-albert": preset_config(100, 32, 3, 4, embedding_width=16),
    },
    preset_heads={"pooled": 0},
    classes={
        "AlbertModel": ("pooled",),
        "AlbertForMaskedLM": ("masked",),
        "AlbertForPreTraining": ("masked", "next"),
        "AlbertForSequenceClassification": ("sequence",),
        "AlbertForTokenClassification": ("token",),
        "AlbertForQuestionAnswering": ("span",),
    },
    defaults={
        **bert.DEFAULTS,
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "num_hidden_groups": 1,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    read=read,
    write=write,
    prefix="albert.",
    base={
        **bert.EMBEDDINGS,
        "encoder.embeddings.projection": "encoder.embedding_hidden_mapping_in",
        "encoder.layers.{}.attention.qkv": (
            GROUP + "attention.query",
            GROUP + "attention.key",
            GROUP + "attention.value",
        ),
        "encoder.layers.{}.attention.out": GROUP + "attention.dense",
        "encoder.layers.{}.attention_norm": GROUP + "attention.LayerNorm",
        "encoder.layers.{}.feedforward.up": GROUP + "ffn",
        "encoder.layers.{}.feedforward.down": GROUP + "ffn_output",
        "encoder.layers.{}.feedforward_norm": GROUP + "full_layer_layer_norm",
        "heads.pooled.transform.dense": "pooler",
    },
    heads={
        "masked": {
            "heads.masked.transform.dense": "predictions.dense",
            "heads.masked.transform.norm": "predictions.LayerNorm",
            "heads.masked.output.weight": "predictions.decoder.weight",
            "heads.masked.output.bias": "predictions.bias",
        },
        "next": {"heads.next.output": "sop_classifier.classifier"},
        "sequence": {"heads.sequence.output": "classifier"},
        "token": {"heads.token.output": "classifier"},
        "span": {"heads.span.output": "qa_outputs"},
    },
    aliases={
        "predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    untied={"predictions.bias": "predictions.decoder.bias"},
    dropped=bert.DROPPED,
)
