"""A model in hand: a network with its tokenizer, from texts to vectors and answers."""

from __future__ import annotations

from regard.predict.model import BATCH_TOKENS, Info, Model, info, load

__all__ = ["BATCH_TOKENS", "Info", "Model", "info", "load"]
