"""Which engine answers fastest on this machine: each runs the same texts, and the best one is kept."""

from __future__ import annotations

import time
import warnings
from typing import Any

from regard.errors import EngineWarning, InputError, RegardError
from regard.export.engines import ENGINES
from regard.predict.load import load
from regard.predict.model import Model
from regard.serve.operations.embedding import EmbedOperation
from regard.serve.operations.operation import Operation
from regard.serve.operations.predicting import PredictOperation

LENGTHS = (24, 128)  # words of the texts that are run
REPEATS = 3  # of which the shortest time counts


def load_fastest(source: str, **options: Any) -> tuple[Model, dict[str, float]]:
    """The model on its fastest engine, and the milliseconds of each engine that it has, for two texts.

    The int8 engines round weights and activations, so their answers differ from those of torch.
    """
    measured: dict[str, float] = {}
    best: Model | None = None
    for engine in ENGINES[1:]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EngineWarning)
                model = load(source, **options, engine=engine)
                milliseconds = measure(model)
        except RegardError:
            if engine == "torch":
                raise
            continue  # such as no ONNX file in the folder, or no int8 products on a GPU
        if model.engine in measured:  # an engine that fell back to another one
            continue
        measured[model.engine] = milliseconds
        if best is None or milliseconds < min(value for name, value in measured.items() if name != model.engine):
            best = model
    assert best is not None
    return best, measured


def measure(model: Model) -> float:
    """Milliseconds for the answers to two texts, the shortest of a few runs."""
    operation = _operation(model)
    word = model.require_tokenizer().short_text
    prepared = operation.prepare([" ".join([word] * length) for length in LENGTHS])
    rows = [(one, index) for one in prepared for index in range(len(one.lengths))]
    operation.run(rows)  # what is prepared once
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        operation.run(rows)
        seconds.append(time.perf_counter() - started)
    return round(1000 * min(seconds), 3)


def _operation(model: Model) -> Operation:
    """What is measured: vectors, or the task of a network that has none."""
    try:
        return EmbedOperation(model)
    except InputError:
        return PredictOperation(model)
