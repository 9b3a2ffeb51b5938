"""What pretraining taught: words in the place of masks, and whether one text follows another."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from regard.data.batching.sequences import split_into_windows
from regard.errors import InputError, NotFinite, pluralize, setting
from regard.model.transformer import Transformer
from regard.predict.inputs import check_encoding
from regard.predict.model_task import can
from regard.ragged import Ragged
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.predict.model import Model

MASKS = re.compile(r"\[MASK\]|<mask>", re.IGNORECASE)  # as BERT and as RoBERTa write it; either is understood


@dataclass(frozen=True)
class Filled:
    """A word for a mask, how likely it is, and the text with it."""

    word: str
    score: float
    text: str


@torch.inference_mode()
def fill(model: Model, text: str, *, top: int) -> list[list[Filled]]:
    """The likeliest words of each mask, in order. Of a long text each mask is read where most around it is seen."""
    if "masked" not in model.network.heads:
        raise InputError(f"this model has no head for masked words, so it cannot fill them in. {can(model.network)}")
    if top < 1:
        raise InputError(f"{setting('top')} is {top}, expected at least 1 word.")
    tokenizer = model.preprocessing().tokenizer
    text, spans = _masked(tokenizer, text)
    encoding = tokenizer.encode(text)
    check_encoding(encoding, "the text", model.config.vocabulary)
    pieces = list(split_into_windows(0, encoding, model.config.max_tokens))
    batch = Ragged.of(
        [piece.ids for piece in pieces],
        segments=[piece.segments for piece in pieces] if model.config.segments > 1 else None,
    )
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + len(piece.ids))
    places = [
        start + place
        for start, piece in zip(starts, pieces, strict=False)
        for place in range(*piece.keep.indices(len(piece.ids)))
        if piece.ids[place] == tokenizer.mask
    ]
    if len(places) != len(spans):
        raise InputError(f"{len(spans)} masks were written but {len(places)} read; leave a space around each.")
    batch = batch.to(model.device)
    assert isinstance(model.network, Transformer)
    hidden_ND = model.network.main(batch)
    chances_MV = model.network.heads["masked"](hidden_ND[torch.tensor(places, device=model.device)]).float().softmax(-1)
    if not bool(chances_MV.isfinite().all()):
        raise NotFinite("this text")
    words_MV = chances_MV[:, : tokenizer.size]
    best = words_MV.topk(min(top, words_MV.shape[1]))
    return [
        [_filled(tokenizer, text, span, token, score) for token, score in zip(tokens, scores, strict=True)]
        for span, tokens, scores in zip(spans, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _masked(tokenizer: Tokenizer, text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with masks as this tokenizer writes them, and where they are."""
    if not isinstance(text, str):
        raise InputError(f"one text was expected, not {text!r:.80}.")
    if tokenizer.mask is None:
        raise InputError("this tokenizer has no mask token, so there is nothing to fill in.")
    own = _written(tokenizer, tokenizer.mask)
    text = MASKS.sub(lambda _: own, text)
    spans = [match.span() for match in re.finditer(re.escape(own), text)]
    if not spans:
        raise InputError(f"there is no {own} in the text. Write it where a word is wanted.")
    return text, spans


def _written(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.backend.id_to_token(token) or ""


def _filled(tokenizer: Tokenizer, text: str, span: tuple[int, int], token: int, score: float) -> Filled:
    word = _written(tokenizer, token)
    inside = word.startswith("##")  # goes on with the word before it
    shown = word if inside else tokenizer.decode([token], special=True).strip()
    before = text[: span[0]].rstrip() if inside else text[: span[0]]
    return Filled(shown, score, before + shown.removeprefix("##") + text[span[1] :])


@torch.inference_mode()
def next_sentence(model: Model, first: str, second: str) -> float:
    """How likely the second text comes right after the first."""
    if "next" not in model.network.heads:
        raise InputError(
            f"this model has no head for next sentences, so it cannot tell what comes next. {can(model.network)}"
        )
    encoding = model.preprocessing().tokenizer.encode(first, second)
    check_encoding(encoding, "the pair of texts", model.config.vocabulary)
    ids: Sequence[int] = encoding.ids
    longest = model.config.max_tokens
    if longest is not None and len(ids) > longest:
        raise InputError(
            f"the two texts have {pluralize(len(ids), 'token')} together; this network has places for {longest}. "
            "Give the end of the first and the beginning of the second."
        )
    segments = [encoding.segments] if model.config.segments > 1 else None
    batch = Ragged.of([ids], segments=segments).to(model.device)
    assert isinstance(model.network, Transformer)
    heads = model.network.heads
    logits_BC = heads["next"](heads["pooled"](model.network.main(batch), batch))
    chance = float(logits_BC.float().softmax(-1)[0, 0])
    if math.isnan(chance):
        raise NotFinite("these two texts")
    return chance
