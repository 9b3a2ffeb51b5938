"""Predictions of the pretraining heads: words for masks, and whether one text comes right after another."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.batching.sequences import SequenceWindow, split_into_windows
from regard.errors import InputError, NotFinite, pluralize, setting
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.predict.inputs import check_encoding
from regard.predict.model_task import capabilities
from regard.ragged import Ragged
from regard.text.tokenizer import Tokenizer

MASKS = re.compile(r"\[MASK\]|<mask>", re.IGNORECASE)  # as BERT and as RoBERTa write it; both are accepted


@dataclass(frozen=True)
class Filled:
    """A word for a mask, its probability (`score`), and the text with this word in place of the mask."""

    word: str
    score: float
    text: str


@torch.inference_mode()
def fill(network: Network, tokenizer: Tokenizer, text: str, *, top: int) -> list[list[Filled]]:
    """The most likely words of each mask, in order.

    A long text is split into windows, and each mask is predicted in the window with the most context around it.
    """
    if "masked" not in network.heads:
        raise InputError(f"this model has no head for masked words, so it cannot fill them in. {capabilities(network)}")
    if top < 1:
        raise InputError(f"{setting('top')} is {top}, expected at least 1 word.")
    text, spans = find_masks(tokenizer, text)
    encoding = tokenizer.encode(text)
    check_encoding(encoding, "the text", network.config.vocabulary)
    windows = list(split_into_windows(0, encoding, network.config.max_tokens))
    positions = _mask_positions(windows, tokenizer.mask)
    if len(positions) != len(spans):
        raise InputError(f"{len(spans)} masks were written but {len(positions)} read; leave a space around each.")
    probabilities_MV = _mask_probabilities(network, windows, positions)[:, : tokenizer.size]
    best = probabilities_MV.topk(min(top, probabilities_MV.shape[1]))
    return [
        [_filled(tokenizer, text, span, token, score) for token, score in zip(tokens, scores, strict=True)]
        for span, tokens, scores in zip(spans, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _mask_positions(windows: Sequence[SequenceWindow], mask: int | None) -> list[int]:
    """The positions of the masks in the batch of all windows, each mask in one window."""
    positions = []
    start = 0
    for window in windows:
        own_positions = range(*window.keep.indices(len(window.ids)))
        positions += [start + position for position in own_positions if window.ids[position] == mask]
        start += len(window.ids)
    return positions


def _mask_probabilities(network: Network, windows: Sequence[SequenceWindow], positions: Sequence[int]) -> Tensor:
    """(masks, vocabulary)."""
    device = next(network.parameters()).device
    segments = [window.segments for window in windows] if network.config.segments > 1 else None
    batch = Ragged.of([window.ids for window in windows], segments=segments).to(device)
    assert isinstance(network, Transformer)
    hidden_ND = network.main(batch)
    logits_MV = network.heads["masked"](hidden_ND[torch.tensor(positions, device=device)])
    probabilities_MV: Tensor = logits_MV.float().softmax(-1)
    if not bool(probabilities_MV.isfinite().all()):
        raise NotFinite("this text")
    return probabilities_MV


def find_masks(tokenizer: Tokenizer, text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with every mask as this tokenizer writes it, and the spans of the masks."""
    if not isinstance(text, str):
        raise InputError(f"one text was expected, not {text!r:.80}.")
    if tokenizer.mask is None:
        raise InputError("this tokenizer has no mask token, so there is nothing to fill in.")
    mask = _token_text(tokenizer, tokenizer.mask)
    text = MASKS.sub(lambda _: mask, text)
    spans = [match.span() for match in re.finditer(re.escape(mask), text)]
    if not spans:
        raise InputError(f"there is no {mask} in the text. Write it in place of a word.")
    return text, spans


def _token_text(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.backend.id_to_token(token) or ""


def _filled(tokenizer: Tokenizer, text: str, span: tuple[int, int], token: int, score: float) -> Filled:
    word = _token_text(tokenizer, token)
    continues = word.startswith("##")  # part of the word before it
    shown = word if continues else tokenizer.decode([token], special=True).strip()
    before = text[: span[0]].rstrip() if continues else text[: span[0]]
    return Filled(shown, score, before + shown.removeprefix("##") + text[span[1] :])


@torch.inference_mode()
def next_sentence(network: Network, tokenizer: Tokenizer, first: str, second: str) -> float:
    """The probability that the second text comes right after the first."""
    if "next" not in network.heads:
        raise InputError(
            f"this model has no head for next sentences, so it cannot predict what comes next. {capabilities(network)}"
        )
    config = network.config
    encoding = tokenizer.encode(first, second)
    check_encoding(encoding, "the pair of texts", config.vocabulary)
    max_tokens = config.max_tokens
    if max_tokens is not None and len(encoding.ids) > max_tokens:
        raise InputError(
            f"the two texts have {pluralize(len(encoding.ids), 'token')} together; the maximum of this network is "
            f"{max_tokens}. Give the end of the first and the beginning of the second."
        )
    segments = [encoding.segments] if config.segments > 1 else None
    batch = Ragged.of([encoding.ids], segments=segments).to(next(network.parameters()).device)
    assert isinstance(network, Transformer)
    logits_BC = network.heads["next"](network.heads["pooled"](network.main(batch), batch))
    probability = float(logits_BC.float().softmax(-1)[0, 0])
    if math.isnan(probability):
        raise NotFinite("these two texts")
    return probability
