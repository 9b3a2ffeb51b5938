"""The answer of a model about one text, in one form for every task: a sentence and bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from regard.errors import InputError
from regard.look.reading import LookInput, shown_id
from regard.model.transformer import Transformer
from regard.predict.masked_words import MASKS
from regard.predict.model import Model
from regard.ragged import Ragged

BARS = 8  # of the most likely words


@dataclass(frozen=True)
class ShownAnswer:
    """`kind` is what the answer is: classes, number, entities, span, translation, next, masks, similarity or none."""

    kind: str
    text: str  # the answer in words
    bars: tuple[tuple[str, float], ...] = ()  # probabilities by name
    spans: tuple[dict[str, Any], ...] = ()  # entities or the answer: start, end, label, score
    where: int = 0  # the text that spans are in: 0 or 1 (the pair)


def answer_of(model: Model, request: LookInput) -> ShownAnswer:
    """What the model answers. A model without answers says so."""
    task = model.task
    heads = model.network.heads
    if model.config.kind == "encoder-decoder" and "language" in heads:
        return ShownAnswer("translation", model.translate([request.text], beams=1)[0])
    if task == "causal" or (task is None and "language" in heads):
        return _next_words(model, request.text)
    if task == "masked" or (task is None and "masked" in heads):
        return _masked_words(model, request.text)
    if task is None or task == "bidirectional" or (task == "embed" and request.pair is None):
        return ShownAnswer("none", "This model turns a text into vectors; it has no answer to give.")
    item = request.text if request.pair is None else (request.text, request.pair)
    return task_answer(model.predict([item])[0].json())


def task_answer(values: Mapping[str, Any]) -> ShownAnswer:
    if "similarity" in values:
        return ShownAnswer("similarity", f"cosine similarity {values['similarity']:.3f}")
    if "value" in values:
        return ShownAnswer("number", f"{values['value']:.4g}")
    if "entities" in values or "words" in values:
        spans = values.get("entities", values.get("words", ()))
        listed = ", ".join(f"{span['text']} ({span['label']})" for span in spans) or "no entity"
        return ShownAnswer("entities", listed, spans=tuple(dict(span) for span in spans))
    if "candidates" in values:
        bars = tuple((candidate["answer"] or "(no answer)", candidate["score"]) for candidate in values["candidates"])
        spans = () if values["start"] is None else ({**_span(values), "label": "answer"},)
        return ShownAnswer("span", values["answer"] or "(no answer in this text)", bars, spans, where=1)
    if "labels" in values:
        return ShownAnswer("classes", ", ".join(values["labels"]) or "(no label)", _bars(values["scores"]))
    return ShownAnswer("classes", values["label"], _bars(values["scores"] or {values["label"]: values["score"]}))


def _span(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"start": values["start"], "end": values["end"], "text": values["answer"], "score": values["score"]}


def _bars(scores: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    ranked = sorted(scores.items(), key=lambda pair: -pair[1])
    return tuple((name, float(score)) for name, score in ranked[: 2 * BARS])


@torch.no_grad()
def _next_words(model: Model, text: str) -> ShownAnswer:
    tokenizer = model.require_tokenizer()
    ids = tokenizer.encode(text).ids
    after = len(tokenizer.surrounding_ids[1])
    limit = model.config.max_tokens or len(ids)
    ids = ids[: len(ids) - after][-limit:]
    logits = model.network(Ragged.of([ids], device=model.device)).logits
    if logits is None:
        raise InputError("this model has no language model head, so it has no next word.")
    best = logits[-1].float().softmax(-1)[: tokenizer.size].topk(min(BARS, tokenizer.size))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    bars = tuple((shown_id(tokenizer, token).text, score) for token, score in pairs)
    return ShownAnswer("next", bars[0][0], bars)


def _masked_words(model: Model, text: str) -> ShownAnswer:
    if not isinstance(model.network, Transformer) or not MASKS.search(text):
        return ShownAnswer("none", "Write [MASK] in place of a word, and the model fills it in.")
    words = model.fill(text, top=BARS)[0]
    return ShownAnswer("masks", words[0].word, tuple((word.word, word.score) for word in words))
