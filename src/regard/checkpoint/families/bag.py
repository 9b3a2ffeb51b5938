"""Networks without attention: n-grams, word features and static embeddings. No other project opens them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from regard.checkpoint.family import Family, HFConfig
from regard.config import BagConfig


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
