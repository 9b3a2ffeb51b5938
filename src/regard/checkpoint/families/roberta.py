"""RoBERTa (Liu et al. 2019): BERT with positions counted from 2 and its own heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regard.checkpoint.families import bert
from regard.checkpoint.family import Family, HFConfig
from regard.config import ModelConfig, PositionConfig
from regard.errors import FolderError


def read(hf: HFConfig) -> ModelConfig:
    before = int(hf["pad_token_id"]) + 1  # positions are counted from the padding id + 1
    max_tokens = int(hf["max_position_embeddings"]) - before
    if max_tokens < 1:
        raise FolderError(f"config.json: max_position_embeddings must be more than {before} (pad_token_id + 1).")
    return replace(bert.read(hf), positions=PositionConfig(max_tokens=max_tokens, offset=before))


def write(config: ModelConfig) -> dict[str, Any]:
    more = {"bos_token_id": 0, "pad_token_id": config.positions.offset - 1, "eos_token_id": 2}
    return bert.write(config) | more


def preset_config(vocabulary: int, width: int, layers: int, heads: int, *, max_tokens: int = 512) -> ModelConfig:
    """The settings of a preset."""
    return replace(
        bert.preset_config(vocabulary, width, layers, heads),
        positions=PositionConfig(max_tokens=max_tokens, offset=2),
        segments=1,
        eps=1e-5,
    )


ROBERTA = Family(
    name="roberta",
    title="RoBERTa",
    presets={
        "roberta-base": preset_config(50265, 768, 12, 12),
        "tiny-roberta": preset_config(100, 32, 2, 4, max_tokens=128),
    },
    preset_heads={"pooled": 0},
    vocabulary_kind="bpe",
    special_tokens="roberta",
    classes={
        "RobertaModel": ("pooled",),
        "RobertaForMaskedLM": ("masked",),
        "RobertaForSequenceClassification": ("sequence",),
        "RobertaForTokenClassification": ("token",),
        "RobertaForQuestionAnswering": ("span",),
    },
    defaults={**bert.DEFAULTS, "vocab_size": 50265, "pad_token_id": 1},
    read=read,
    write=write,
    prefix="roberta.",
    base={**bert.EMBEDDINGS, **bert.LAYERS, **bert.POOLER},
    heads={
        "masked": {
            "heads.masked.transform.dense": "lm_head.dense",
            "heads.masked.transform.norm": "lm_head.layer_norm",
            "heads.masked.output.weight": "lm_head.decoder.weight",
            "heads.masked.output.bias": "lm_head.bias",
        },
        "sequence": {
            "heads.pooled.transform.dense": "classifier.dense",
            "heads.sequence.output": "classifier.out_proj",
        },
        "token": {"heads.token.output": "classifier"},
        "span": {"heads.span.output": "qa_outputs"},
    },
    aliases={
        "lm_head.decoder.weight": "embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    untied={"lm_head.bias": "lm_head.decoder.bias"},
    dropped=bert.DROPPED,
)
