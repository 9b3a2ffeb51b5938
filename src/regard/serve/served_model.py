"""A model in this process with its worker, the operations that were used, and what it can do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from torch import nn

from regard.config import ModelConfig
from regard.errors import InputError
from regard.export.session import without_spinning
from regard.model.linear import Linear
from regard.predict.load import load
from regard.predict.model import Model
from regard.serve.model_worker import ModelWorker
from regard.serve.operations.operation import Operation, is_pair_request
from regard.serve.operations.registry import OPERATIONS, operation_class
from regard.serve.served import Answered, Futures, Item, Observe
from regard.serve.settings import ServeLimits

MAX_OPERATIONS = 256  # kept per model, one for each combination of options that was used


class ServedModel:
    """A loaded model with its worker and the operations that were used."""

    def __init__(self, name: str, source: str, model: Model, limits: ServeLimits, observe: Observe) -> None:
        self.name = name
        self.source = source
        self.model = model
        self.engine_ms: dict[str, float] = {}  # milliseconds of each engine, where they were measured
        self.worker = ModelWorker(model, limits, observe=observe)
        self._operations: dict[tuple[Any, ...], Operation] = {}
        self._lock = threading.Lock()

    def operation(self, kind: str, items: Sequence[Item] = (), **options: Any) -> Operation:
        """The operation with these options. Raises InputError if the model cannot do it."""
        if kind == "predict":
            options["pairs"] = is_pair_request(items)
        key = (kind, repr(sorted(options.items())))
        with self._lock:
            if key not in self._operations:
                if len(self._operations) >= MAX_OPERATIONS:
                    self._operations.clear()
                self._operations[key] = operation_class(kind)(self.model, **options)
            return self._operations[key]

    def submit(self, kind: str, items: Sequence[Item], options: Mapping[str, Any]) -> Futures:
        """A future for each item. Raises InputError if the model cannot do it, QueueFull, or NotReady."""
        return self.worker.submit(self.operation(kind, items, **options), items)

    def stream(self, prompt: str, options: Mapping[str, Any], on_piece: Callable[[str], None]) -> Answered:
        """Generate, with a call for each piece of text. A cancelled future stops it."""
        from regard.serve.operations.text_by_text import StreamOperation

        operation = StreamOperation(self.model, on_piece=on_piece, **options)
        return self.worker.submit(operation, [prompt])[0]

    @property
    def is_alive(self) -> bool:
        """Whether batches are run."""
        return self.worker.is_alive

    @property
    def queued_tokens(self) -> int:
        """Tokens that wait."""
        return self.worker.batcher.queued_tokens

    def ping(self) -> Future[Any]:
        """Whether batches are run."""
        return done_future(self.is_alive)

    def routes(self) -> list[str]:
        """The routes that this model can answer."""
        routes = []
        for kind in OPERATIONS:
            try:
                self.operation(kind)
            except (InputError, OSError):
                continue
            routes.append(f"/{kind}")
        return routes

    def info(self) -> Future[dict[str, Any]]:
        """What `regard info` shows, the engine, the routes and the state of the queue."""
        batcher = self.worker.batcher
        return done_future(
            {
                "name": self.name,
                **asdict(self.model.info()),
                "engine": self.model.engine,
                "engine_ms": self.engine_ms or self.model.engine_ms,
                "device": str(self.model.device),
                "routes": self.routes(),
                "batch_invariant": is_batch_invariant(self.model),
                "queue_tokens": batcher.queued_tokens,
                "tokens_per_second": round(batcher.speed),
            }
        )

    def close(self, *, seconds: float = 30.0) -> None:
        """Accept no more requests, and wait until those in progress are answered."""
        self.worker.close(seconds=seconds)


def load_served(name: str, source: str, limits: ServeLimits, observe: Observe, **options: Any) -> ServedModel:
    """Load a model, with `options` of `regard.load` or the engine "fastest", and run a first text."""
    engine = options.pop("engine", "auto")
    engine_ms: dict[str, float] = {}
    with without_spinning():  # the process that speaks HTTP needs the cores too
        if engine == "fastest":
            from regard.serve.fastest_engine import load_fastest

            model, engine_ms = load_fastest(source, **options)
        else:
            model = load(source, **options, engine=engine)
    model.require_tokenizer()
    served = ServedModel(name, source, model, limits, observe)
    served.engine_ms = engine_ms
    warm_up(served)
    return served


def done_future(value: Any) -> Future[Any]:
    """A future that has its result."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def warm_up(served: ServedModel) -> None:
    """Run one short text, so that the first request does not wait for what is prepared once."""
    plain = set(served.model.network.heads) <= {"pooled"}  # a network for vectors, which needs no task
    text = served.model.require_tokenizer().short_text
    for kind in ("embed",) if plain else ("predict", "embed"):
        try:
            operation = served.operation(kind)
            prepared = operation.prepare([text])
        except InputError:  # it has no task or no vectors, or takes pairs or questions
            continue
        operation.run([(prepared[0], index) for index in range(len(prepared[0].lengths))])
        return


def is_batch_invariant(model: Model) -> bool:
    """Whether a text has the same answer, bit for bit, whatever runs in the same batch.

    Only the products of packed weights (`regard.model.linear`) are known to be so. Classes of ModernBERT, the one
    family with local attention here, were seen to differ in the last bit, also between calls of `Model.predict`; the
    cause is not known. Networks that generate run text by text.
    """
    if model.config.kind != "encoder":
        return True
    config = model.config
    if isinstance(config, ModelConfig) and config.attention.window is not None:
        return False
    if model.engine != "torch" or model.device.type != "cpu":
        return False
    layers = [layer for layer in model.inference_network.modules() if isinstance(layer, nn.Linear)]
    return bool(layers) and all(_is_packed(layer) for layer in layers)


def _is_packed(layer: nn.Linear) -> bool:
    return isinstance(layer, Linear) and layer.keeps_packed and layer.min_packed_rows == 1
