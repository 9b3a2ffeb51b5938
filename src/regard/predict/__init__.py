"""A model: a network with its tokenizer, from texts to vectors and answers."""

from __future__ import annotations

from regard.predict.create import create
from regard.predict.info import ModelInfo
from regard.predict.load import info, load
from regard.predict.model import Model
from regard.predict.runner import BATCH_TOKENS

__all__ = ["BATCH_TOKENS", "Model", "ModelInfo", "create", "info", "load"]
