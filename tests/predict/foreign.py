"""Folders that transformers wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.text.tokenizer import Tokenizer

REVIEWS = ["warm and lovely", "a dull film", "x" * 40 + " the worst of the year", "fun"]

SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}

Foreign = Callable[..., tuple[Path, Any]]


def logits(model: Any, words: Tokenizer, text: str, pair: str | None = None) -> Any:
    result = words.encode(text, pair)
    with torch.inference_mode():
        return model(
            input_ids=torch.tensor([result.ids]), token_type_ids=torch.tensor([result.segments], dtype=torch.long)
        )
