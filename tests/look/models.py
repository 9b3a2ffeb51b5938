"""Tiny models of every kind that the page shows, with wide random weights so that every part matters."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import regard
from regard.config import PositionConfig
from regard.look.api import LookApi
from regard.look.reading import LookInput
from regard.look.session import LookDefaults, LookSession
from regard.predict import Model
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

TEXT = "the cook burned the soup"
PAIR = "who opened a window"
WORDS = ("the cook who burned the soup opened a window", "warm and lovely films", "a dull film , poor and cold .")

LONGER = PositionConfig("rotary", max_tokens=4096)


@functools.cache
def tokenizer(kind: str = "wordpiece") -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer tokens than requested: the texts are short
        return train_tokenizer_from_texts(WORDS * 8, kind=kind, size=300 if kind == "bpe" else 90)


def transformer(preset: str, *, words: Tokenizer | None = None, **settings: Any) -> Model:
    settings.setdefault("init_std", 0.3)
    model = regard.create(preset, tokenizer=words or tokenizer(), **settings)
    model.network.eval()
    return model


def recurrent(preset: str) -> Model:
    model = regard.create(preset, tokenizer=tokenizer())
    model.network.eval()
    return model


# Networks without a trained task: made in no time, and once.
_MAKE: dict[str, Callable[[], Model]] = {
    "encoder": lambda: transformer("tiny-bert"),
    "classifier": lambda: transformer("tiny-bert", heads={"pooled": 0, "sequence": 3}),
    "masked": lambda: transformer("tiny-bert", heads={"masked": 0}),
    "albert": lambda: transformer("tiny-albert"),
    "local": lambda: transformer("tiny-modernbert"),
    "gpt2": lambda: transformer("tiny-gpt2", words=tokenizer("bpe")),
    "llama": lambda: transformer("tiny-llama", words=tokenizer("bpe")),
    "translator": lambda: transformer("tiny-transformer"),
    "relative": lambda: transformer("tiny-t5"),
    "gru": lambda: recurrent("tiny-gru-additive"),
    "plain gru": lambda: recurrent("tiny-gru"),
}

LONG = functools.cache(lambda: transformer("tiny-llama", words=tokenizer("wordpiece"), positions=LONGER))
KINDS = {name: functools.cache(make) for name, make in _MAKE.items()}


def look_input(text: str = TEXT, pair: str | None = None, **more: Any) -> LookInput:
    return LookInput(text, pair, **more)


def session(*models: Model, text: str = TEXT, pair: str | None = None, data: Path | None = None) -> LookSession:
    named = [(f"model {number}", model) for number, model in enumerate(models)]
    return LookSession(named, LookDefaults(text, pair, data=data))


def api(*models: Model, **defaults: Any) -> LookApi:
    return LookApi(session(*models, **defaults))
