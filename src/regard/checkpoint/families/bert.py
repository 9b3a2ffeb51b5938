"""BERT (Devlin et al. 2019)."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.family import (
    Family,
    HFConfig,
    activation_from_hf,
    activation_to_hf,
    encoder_attention,
    require_settings,
)
from regard.checkpoint.names import NameTable
from regard.config import AttentionConfig, ModelConfig, PositionConfig

DEFAULTS: HFConfig = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}


def read(hf: HFConfig) -> ModelConfig:
    require_settings(hf, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["hidden_size"],
        layers=hf["num_hidden_layers"],
        ffn_width=hf["intermediate_size"],
        attention=encoder_attention(hf),
        positions=PositionConfig(max_tokens=hf["max_position_embeddings"]),
        activation=activation_from_hf(hf, "hidden_act"),
        eps=hf["layer_norm_eps"],
        segments=hf["type_vocab_size"],
        tied=hf["tie_word_embeddings"],
        dropout=hf["hidden_dropout_prob"],
        init_std=hf["initializer_range"],
    )


def write(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.attention.heads,
        "intermediate_size": config.ffn_width,
        "hidden_act": activation_to_hf(config.activation),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention.dropout,
        "max_position_embeddings": (config.max_tokens or 0) + config.positions.offset,
        "type_vocab_size": config.segments,
        "initializer_range": 0.02 if config.init_std is None else config.init_std,
        "layer_norm_eps": config.eps,
        "pad_token_id": 0,
        "tie_word_embeddings": config.tied,
    }


LAYERS: NameTable = {
    "encoder.layers.{}.attention.qkv": (
        "encoder.layer.{}.attention.self.query",
        "encoder.layer.{}.attention.self.key",
        "encoder.layer.{}.attention.self.value",
    ),
    "encoder.layers.{}.attention.out": "encoder.layer.{}.attention.output.dense",
    "encoder.layers.{}.attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "encoder.layers.{}.feedforward.up": "encoder.layer.{}.intermediate.dense",
    "encoder.layers.{}.feedforward.down": "encoder.layer.{}.output.dense",
    "encoder.layers.{}.feedforward_norm": "encoder.layer.{}.output.LayerNorm",
}
EMBEDDINGS: NameTable = {
    "encoder.embeddings.tokens": "embeddings.word_embeddings",
    "encoder.embeddings.places": "embeddings.position_embeddings",
    "encoder.embeddings.segments": "embeddings.token_type_embeddings",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
}
POOLER: NameTable = {"heads.pooled.transform.dense": "pooler.dense"}
DROPPED = ("embeddings.position_ids", "embeddings.token_type_ids")


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, ffn_width: int | None = None) -> ModelConfig:
    """The settings of a preset."""
    return ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        ffn_width=ffn_width or 4 * width,
        attention=AttentionConfig(heads, dropout=0.1),
        segments=2,
    )


BERT = Family(
    name="bert",
    title="BERT",
    presets={
        "bert-tiny": preset_config(30522, 128, 2, 2),
        "bert-mini": preset_config(30522, 256, 4, 4),
        "bert-small": preset_config(30522, 512, 4, 8),
        "bert-medium": preset_config(30522, 512, 8, 8),
        "bert-base-uncased": preset_config(30522, 768, 12, 12),
        "bert-base-cased": preset_config(28996, 768, 12, 12),
        "bert-base-chinese": preset_config(21128, 768, 12, 12),
        "bert-base-multilingual-cased": preset_config(119547, 768, 12, 12),
        "bert-large-uncased": preset_config(30522, 1024, 24, 16),
        "tiny-bert": preset_config(100, 32, 2, 4, ffn_width=64),
    },
    preset_heads={"pooled": 0},
    classes={
        "BertModel": ("pooled",),
        "BertForMaskedLM": ("masked",),
        "BertForPreTraining": ("masked", "next"),
        "BertForNextSentencePrediction": ("next",),
        "BertForSequenceClassification": ("sequence",),
        "BertForTokenClassification": ("token",),
        "BertForQuestionAnswering": ("span",),
    },
    defaults=DEFAULTS,
    read=read,
    write=write,
    prefix="bert.",
    base={**EMBEDDINGS, **LAYERS, **POOLER},
    heads={
        "masked": {
            "heads.masked.transform.dense": "cls.predictions.transform.dense",
            "heads.masked.transform.norm": "cls.predictions.transform.LayerNorm",
            "heads.masked.output.weight": "cls.predictions.decoder.weight",
            "heads.masked.output.bias": "cls.predictions.bias",
        },
        "next": {"heads.next.output": "cls.seq_relationship"},
        "sequence": {"heads.sequence.output": "classifier"},
        "token": {"heads.token.output": "classifier"},
        "span": {"heads.span.output": "qa_outputs"},
    },
    aliases={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    untied={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    dropped=DROPPED,
)
