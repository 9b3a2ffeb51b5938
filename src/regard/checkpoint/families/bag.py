"""Networks without attention: n-grams, word features and static embeddings. No other project opens them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from regard.checkpoint.family import Family, HFConfig
from regard.config import BagConfig, NgramConfig


def read(hf: HFConfig) -> BagConfig:
    return BagConfig(**{field.name: hf[field.name] for field in fields(BagConfig)})


def write(config: BagConfig) -> dict[str, Any]:
    return asdict(config)


def _family(name: str, title: str, docs: str, prefix: str) -> Family:
    return Family(
        name=name,
        title=title,
        docs=docs,
        model_type=f"regard-{name}",
        in_transformers=False,
        classes={
            prefix: (),
            f"{prefix}ForSequenceClassification": ("sequence",),
            f"{prefix}ForTokenClassification": ("token",),
        },
        defaults=asdict(BagConfig(vocabulary=1, width=1)),
        read=read,
        write=write,
        base={"encoder.tokens": "encoder.tokens", "encoder.idf": "encoder.idf"},
        heads={
            "sequence": {
                "heads.sequence.hidden": "heads.sequence.hidden",
                "heads.sequence.output": "heads.sequence.output",
            },
            "token": {"heads.token.output": "heads.token.output"},
        },
    )


NGRAM = _family("ngram", "n-gram", "the baseline `ngram`; transformers cannot open it", "Ngram")
STATIC = _family("static", "static embedding", "the baseline `static`; transformers cannot open it", "Static")


def read_language(hf: HFConfig) -> NgramConfig:
    return NgramConfig(**{field.name: hf[field.name] for field in fields(NgramConfig)})


def write_language(config: NgramConfig) -> dict[str, Any]:
    return asdict(config) | {"bos_token_id": 0, "eos_token_id": 0}


NGRAM_LANGUAGE = Family(
    name="ngram-language",
    title="n-gram language",
    docs="the language baselines `bigram`, `trigram` and `ngram`; transformers cannot open them",
    model_type="regard-ngram-language",
    in_transformers=False,
    classes={"NgramDecoder": (), "NgramForLanguage": ("language",)},
    defaults=asdict(NgramConfig(vocabulary=1)),
    read=read_language,
    write=write_language,
    base={name: name for name in ("decoder.parents", "decoder.words", "decoder.counts", "decoder.sizes")},
    heads={"language": {}},
)
