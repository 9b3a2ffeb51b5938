"""Vectors of texts: the same as `Model.embed`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch

from regard.data.inputs import check_texts
from regard.errors import InputError, NotFinite
from regard.predict.embedding import check_pooling, join_windows, pool_window, resolve_layer, text_windows
from regard.predict.model import Model
from regard.predict.runner import NetworkRunner
from regard.serve.operations.operation import Operation, Prepared
from regard.serve.served import Item


class EmbedOperation(Operation):
    """Hidden states of one layer, pooled over the tokens of each text."""

    def __init__(self, model: Model, *, layer: int | str = -1, pooling: str = "auto", normalize: bool = False) -> None:
        super().__init__(model)
        self.pooling = model.pooling if pooling == "auto" else pooling
        check_pooling(self.pooling)
        self.layer = resolve_layer(model.inference_network, layer)
        self.normalize = normalize
        self.runner = NetworkRunner(model.inference_network, compile=model.compile)

    @property
    def group(self) -> Hashable:
        return ("embed", self.layer, self.pooling, self.normalize)

    def prepare(self, items: Sequence[Item]) -> list[Prepared]:
        for number, item in enumerate(items):
            if not isinstance(item, str):
                raise InputError(f"text {number} is {item!r:.80} ({type(item).__name__}); expected a text.")
        tokenizer = self.model.require_tokenizer()
        windows = text_windows(self.model.inference_network, tokenizer, check_texts(items))
        owned: list[list[Any]] = [[] for _ in items]
        for window in windows:
            owned[window.text].append(window)
        return [Prepared(tuple(len(window.ids) for window in own), own) for own in owned]

    @torch.inference_mode()
    def run(self, rows: Sequence[tuple[Prepared, int]]) -> list[Any]:
        chosen = [prepared.payload[index] for prepared, index in rows]
        batch = self.runner.make_batch([window.ids for window in chosen], [window.segments for window in chosen])
        hidden = batch.split(self.runner.hidden_states(self.layer)(batch).float())
        vectors = [
            pool_window(state_TD, window.keep, self.pooling).cpu()
            for window, state_TD in zip(chosen, hidden, strict=True)
        ]
        if not all(bool(vector.isfinite().all()) for vector in vectors):
            raise NotFinite("this text")
        return vectors

    @torch.inference_mode()
    def answer(self, prepared: Prepared, outputs: Sequence[Any]) -> dict[str, Any]:
        counts = [window.keep.stop - window.keep.start for window in prepared.payload]
        vector = join_windows(list(outputs), counts, self.pooling)
        if self.normalize:
            vector = torch.nn.functional.normalize(vector, dim=-1)
        return {"embedding": vector.tolist(), "truncated": False, "windows": len(outputs)}
