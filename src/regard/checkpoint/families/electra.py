"""ELECTRA (Clark et al. 2020): factorised embeddings, a generator of words and a detector of replaced ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regard.checkpoint.families import bert
from regard.checkpoint.family import Family, HFConfig
from regard.config import ModelConfig, PoolConfig


def read(hf: HFConfig) -> ModelConfig:
    narrow = hf["embedding_size"]
    return replace(
        bert.read(hf),
        embedding_width=None if narrow == hf["hidden_size"] else narrow,
        pool=PoolConfig(activation="gelu"),
    )


def write(config: ModelConfig) -> dict[str, Any]:
    return bert.write(config) | {"embedding_size": config.embedding_width or config.width}


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, embedding_width: int) -> ModelConfig:
    """The settings of a preset."""
    return replace(
        bert.preset_config(vocabulary, width, layers, heads),
        embedding_width=embedding_width,
        pool=PoolConfig(activation="gelu"),
    )


ELECTRA = Family(
    name="electra",
    title="ELECTRA",
    presets={
        "electra-small": preset_config(30522, 256, 12, 4, embedding_width=128),
        "tiny-electra": preset_config(100, 32, 2, 4, embedding_width=16),
    },
    classes={
        "ElectraModel": (),
        "ElectraForMaskedLM": ("masked",),
        "ElectraForPreTraining": ("replaced",),
        "ElectraForSequenceClassification": ("sequence",),
        "ElectraForTokenClassification": ("token",),
        "ElectraForQuestionAnswering": ("span",),
    },
    defaults={
        **bert.DEFAULTS,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    },
    read=read,
    write=write,
    prefix="electra.",
    base={**bert.EMBEDDINGS, **bert.LAYERS, "encoder.embeddings.projection": "embeddings_project"},
    heads={
        "masked": {
            "heads.masked.transform.dense": "generator_predictions.dense",
            "heads.masked.transform.norm": "generator_predictions.LayerNorm",
            "heads.masked.output": "generator_lm_head",
        },
        "replaced": {
            "heads.replaced.transform.dense": "discriminator_predictions.dense",
            "heads.replaced.output": "discriminator_predictions.dense_prediction",
        },
        "sequence": {
            "heads.pooled.transform.dense": "classifier.dense",
            "heads.sequence.output": "classifier.out_proj",
        },
        "token": {"heads.token.output": "classifier"},
        "span": {"heads.span.output": "qa_outputs"},
    },
    aliases={"generator_lm_head.weight": "embeddings.word_embeddings.weight"},
    dropped=bert.DROPPED,
)
