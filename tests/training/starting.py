"""The model a training of three texts starts from."""

from __future__ import annotations

from typing import Any

from regard.tasks.classify import Classify
from regard.training.initial_model import InitialModel, initial_model

TEXTS = ["a good day", "a bad day", "the day was long"]
CLASSIFY = Classify(names=("bad", "good", "so so"))


def start(task: Any = CLASSIFY, **options: Any) -> InitialModel:
    return initial_model(
        task, **{"start": None, "preset": None, "tokenizer": None, "texts": TEXTS, "seed": 0, **options}
    )
