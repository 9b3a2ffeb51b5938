"""The models of a server by name: loading, what each can do, and replacing one without losing a request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import nn

from regard.config import ModelConfig
from regard.errors import InputError, did_you_mean
from regard.model.linear import Linear
from regard.predict.load import load
from regard.predict.model import Model
from regard.serve.model_worker import Answered, ModelWorker, Observe
from regard.serve.operations.embedding import EmbedOperation
from regard.serve.operations.operation import Item, Operation
from regard.serve.operations.predicting import AnswerOperation, PredictOperation, is_pair_request
from regard.serve.operations.text_by_text import ExplainOperation, FillOperation, GenerateOperation, TranslateOperation
from regard.serve.settings import NotReady, ServeLimits, UnknownModel

OPERATIONS: dict[str, Callable[..., Operation]] = {
    "predict": PredictOperation,
    "embed": EmbedOperation,
    "fill": FillOperation,
    "answer": AnswerOperation,
    "translate": TranslateOperation,
    "generate": GenerateOperation,
    "explain": ExplainOperation,
}
Futures = list[Answered]
MAX_OPERATIONS = 256  # kept per model, one for each combination of options that was used


class ServedModel:
    """A loaded model with its worker and the operations that were used."""

    def __init__(self, name: str, source: str, model: Model, limits: ServeLimits, observe: Observe) -> None:
        self.name = name
        self.source = source
        self.model = model
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
                self._operations[key] = OPERATIONS[kind](self.model, **options)
            return self._operations[key]

    def routes(self) -> list[str]:
        """The routes that this model can answer."""
        routes = []
        for kind in OPERATIONS:
            try:
                self.operation(kind)
            except (InputError, OSError):
                continue
            routes.append(f"/{kind}")
        return [*routes, "/tokenize"] if self.model.tokenizer is not None else routes

    def info(self) -> dict[str, Any]:
        """What `regard info` shows, the engine, the routes and the state of the queue."""
        batcher = self.worker.batcher
        return {
            "name": self.name,
            **asdict(self.model.info()),
            "engine": self.model.engine,
            "device": str(self.model.device),
            "routes": self.routes(),
            "batch_invariant": is_batch_invariant(self.model),
            "queue_tokens": batcher.queued_tokens,
            "tokens_per_second": round(batcher.speed),
        }


class ModelTable:
    """The models of one server. The first is the default."""

    def __init__(self, limits: ServeLimits, *, observe: Observe = lambda name, value: None, **options: Any) -> None:
        self.limits = limits
        self.observe = observe
        self.options = options  # of `regard.load`
        self.models: dict[str, ServedModel] = {}
        self.sources: dict[str, str] = {}
        self.draining = False
        self.error: Exception | None = None  # why a model could not be loaded
        self._lock = threading.Lock()

    def add(self, name: str, model: Model, *, source: str = "") -> ServedModel:
        """Serve a model that is loaded already."""
        served = ServedModel(name, source, model, self.limits, self.observe)
        self.models[name] = served
        return served

    def load_all(self, sources: Sequence[str]) -> None:
        """Load models by name or folder."""
        self.sources = named_sources(sources)
        for name, source in self.sources.items():
            self.models[name] = self._loaded(name, source)

    def _loaded(self, name: str, source: str) -> ServedModel:
        model = load(source, **self.options)
        model.require_tokenizer()
        served = ServedModel(name, source, model, self.limits, self.observe)
        warm_up(served)
        return served

    @property
    def ready(self) -> bool:
        """Whether every model is loaded and answers."""
        complete = bool(self.models) and self.sources.keys() <= self.models.keys()
        return complete and not self.draining and all(one.worker.is_alive for one in self.models.values())

    def get(self, name: str | None) -> ServedModel:
        """A model by name, the first one if no name was sent."""
        models = self.models
        if not models or (name is None and self.sources and next(iter(self.sources)) not in models):
            raise NotReady("the model is still being loaded. Try again in a moment.")
        if name is None:
            return next(iter(models.values()))
        if name not in models:
            raise UnknownModel(f'no model "{name[:100]}" is loaded.{did_you_mean(name, models)}')
        return models[name]

    def submit(self, name: str | None, kind: str, items: Sequence[Item], **options: Any) -> tuple[ServedModel, Futures]:
        """The futures of a request, and the model that answers it."""
        return self.submit_operation(name, lambda served: served.operation(kind, items, **options), items)

    def submit_operation(
        self, name: str | None, make: Callable[[ServedModel], Operation], items: Sequence[Item]
    ) -> tuple[ServedModel, Futures]:
        """The same for an operation that `make` returns for a model: the new one if it was replaced at this moment."""
        while True:
            served = self.get(name)
            try:
                return served, served.worker.submit(make(served), items)
            except NotReady:
                if self.models.get(served.name) is served:
                    raise

    def reload(self, name: str | None = None) -> list[str]:
        """Load models again from their folders, one after the other; requests in progress keep the old one.

        Raises an error and keeps the old model where the new one cannot be loaded.
        """
        names = list(self.sources) if name is None else [self.get(name).name]
        with self._lock:
            for each in names:
                new = self._loaded(each, self.sources[each])
                old, self.models[each] = self.models[each], new
                threading.Thread(target=old.worker.close, name="close", daemon=True).start()
        return names

    def close(self, *, seconds: float) -> None:
        """Answer what is in progress, and stop."""
        self.draining = True
        for served in list(self.models.values()):
            served.worker.close(seconds=seconds)


def named_sources(sources: Sequence[str]) -> dict[str, str]:
    """Sources by model name: the last part of a path, or `name=source`. Raises InputError for equal names."""
    named: dict[str, str] = {}
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or "/" in name:
            name, path = Path(source).name or source, source
        if name in named:
            raise InputError(
                f'two models are called "{name}": {named[name]} and {path}. Name one of them: other-name={path}.'
            )
        named[name] = path
    return named


def warm_up(served: ServedModel) -> None:
    """Run one short text, so that the first request does not wait for what is prepared once."""
    kind = next((route.removeprefix("/") for route in served.routes() if route in ("/predict", "/embed")), None)
    if kind is None:
        return
    text = served.model.require_tokenizer().short_text
    try:
        operation = served.operation(kind)
        prepared = operation.prepare([text])
    except InputError:  # it takes pairs or questions
        return
    operation.run([(prepared[0], index) for index in range(len(prepared[0].lengths))])


def is_batch_invariant(model: Model) -> bool:
    """Whether a text has the same answer, bit for bit, whatever runs in the same batch.

    Only oneDNN's products on ARM in fp32 are known to be so. Classes of ModernBERT, the one family with local attention
    here, were seen to differ in the last bit, also between calls of `Model.predict`; the cause is not known. Networks
    that generate run text by text.
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
