"""The models that the page shows, and the texts they have read: each is read once, the latest stay in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config import ModelConfig, RecurrentConfig
from regard.errors import InputError
from regard.look.jobs import Jobs
from regard.look.reading import LookInput, Reading, part_names, read_text
from regard.model.mean_layer import ends_with_mean
from regard.predict.model import Model

MAX_BYTES = 1 << 29  # of queries and keys of the texts that stay in memory
MAX_READINGS = 32


@dataclass(frozen=True)
class LookDefaults:
    """What the page shows first."""

    text: str = ""
    pair: str | None = None
    target: str | None = None
    data: Path | None = None  # for the views over a data set


@dataclass(eq=False)
class LookSession:
    """Models by number, with what the page starts with. One request at a time uses the networks."""

    models: Sequence[tuple[str, Model]]
    defaults: LookDefaults = field(default_factory=LookDefaults)

    def __post_init__(self) -> None:
        if not self.models:
            raise InputError("no model was given to look at.")
        self.lock = threading.RLock()
        self.jobs = Jobs()
        self._readings: OrderedDict[tuple[int, LookInput], Reading] = OrderedDict()

    def model(self, number: int) -> Model:
        if not 0 <= number < len(self.models):
            raise InputError(f"model {number} does not exist: this page shows {len(self.models)}, counted from 0.")
        return self.models[number][1]

    def read(self, number: int, request: LookInput) -> Reading:
        """The text as the model read it."""
        key = (number, request)
        if key in self._readings:
            self._readings.move_to_end(key)
            return self._readings[key]
        reading = read_text(self.model(number), request)
        self._readings[key] = reading
        while len(self._readings) > 1 and self._is_full():
            self._readings.popitem(last=False)
        return reading

    def _is_full(self) -> bool:
        total = sum(reading.nbytes for reading in self._readings.values())
        return len(self._readings) > MAX_READINGS or total > MAX_BYTES


def describe(name: str, model: Model) -> dict[str, Any]:
    """What the page needs to know about a model before it reads a text."""
    config = model.config
    heads = config.attention.heads if isinstance(config, ModelConfig) else 1
    return {
        "name": name,
        "family": model.family,
        "kind": config.kind,
        "task": model.task,
        "labels": list(model.labels or ()),
        "layers": config.layers,
        "decoder_layers": config.decoder_layers,
        "heads": heads,
        "width": config.width,
        "head_width": config.head_width if isinstance(config, ModelConfig) else config.width,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "vocabulary": config.vocabulary,
        "max_tokens": config.max_tokens,
        "untrained": model.untrained,
        "parts": list(part_names(model)),
        "positions": config.positions.kind if isinstance(config, ModelConfig) else "none",
        "network": network_words(model),
        "inputs": list(input_fields(model)),
        "ends_with_mean": ends_with_mean(model.network),
    }


def network_words(model: Model) -> str:
    """The kind of network in words."""
    config = model.config
    if isinstance(config, RecurrentConfig):
        attention = "without attention" if config.score == "none" else f"with {config.score} attention"
        return f"{config.cell.upper()} {config.kind} {attention}"
    if not isinstance(config, ModelConfig):
        return "bag of features, without attention"
    return f"Transformer {config.kind}"


def input_fields(model: Model) -> tuple[str, ...]:
    """The names of the texts the model reads."""
    if model.config.kind == "encoder-decoder":
        return ("source", "target")
    task = model.task
    if task == "answer":
        return ("question", "context")
    if task == "pair":
        return ("first text", "second text")
    if task not in (None, "embed"):
        return ("text",)
    if model.config.kind == "encoder" and isinstance(model.config, ModelConfig):
        return ("text", "second text (optional)")
    return ("text",)
