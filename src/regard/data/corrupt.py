"""Masked language model: which tokens are hidden, what stands in their place, and what they were.

Works on flat tokens, on any device, without a loop. Draw again every epoch: the same text then hides other words.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.errors import InputError

Unit = Literal["token", "word", "span"]


@dataclass(frozen=True)
class MaskSettings:
    """What BERT does unless told otherwise: 15 % of the tokens, of these 80 % masked, 10 % random, 10 % kept."""

    mask: int  # id of [MASK]
    vocabulary: int
    special: tuple[int, ...]  # ids that are never chosen and never drawn
    rate: float = 0.15
    masked: float = 0.8
    random: float = 0.1
    unit: Unit = "token"
    stop: float = 0.2  # of spans: the chance to end after each token (geometric lengths)
    longest: int = 10  # of spans

    def __post_init__(self) -> None:
        if self.unit not in ("token", "word", "span"):
            raise InputError(f'masking by "{self.unit}" is not known. Choose one of: token, word, span.')
        if not 0 < self.rate < 1:
            raise InputError(f"the rate of masking is {self.rate}, but it must lie between 0 and 1.")
        if min(self.masked, self.random) < 0 or self.masked + self.random > 1:
            raise InputError(f"of the chosen, {self.masked} masked and {self.random} random do not make a whole of 1.")
        if not 0 < self.stop <= 1 or self.longest < 1:
            raise InputError(
                f"spans with stop {self.stop} and longest {self.longest}: expected 0 to 1, and at least 1."
            )
        if any(not 0 <= token < self.vocabulary for token in (self.mask, *self.special)):
            raise InputError(f"special ids {(self.mask, *self.special)} must lie in a vocabulary of {self.vocabulary}.")


@dataclass(frozen=True, eq=False)
class Masked:
    """Tokens after masking, the flat places that were chosen, and what stood there."""

    ids: Tensor  # (N,)
    places: Tensor  # (M,) rising
    labels: Tensor  # (M,)


def mask_tokens(
    ids: Tensor, settings: MaskSettings, *, words: Tensor | None = None, generator: torch.Generator | None = None
) -> Masked:
    """Choose, hide and remember. `words` is what whole words need: where words start (bool), or a word id a token.

    Every token that is not special is chosen with the same chance, `rate`, in each of the three units.
    """
    if ids.dim() != 1:
        raise InputError(f"flat ids were expected, but their shape is {tuple(ids.shape)}.")
    plain, drawable = _tables(settings, ids.device)
    chosen = _chosen(ids, settings, words, generator) & plain[ids]
    places = chosen.nonzero().squeeze(1)
    labels = ids[places]
    luck = torch.rand(places.shape, generator=generator, device=ids.device)
    if settings.unit == "span":
        luck = luck[_runs(places)]  # a span is masked, replaced or kept as a whole
    drawn = torch.randint(len(drawable), places.shape, generator=generator, device=ids.device)
    shown = torch.where(luck < settings.masked + settings.random, drawable[drawn].to(ids.dtype), labels)
    shown = shown.masked_fill(luck < settings.masked, settings.mask)
    return Masked(ids.index_copy(0, places, shown), places, labels)


@functools.lru_cache(maxsize=8)
def _tables(settings: MaskSettings, device: torch.device) -> tuple[Tensor, Tensor]:
    """Which ids may be chosen, and the ids that may be drawn."""
    plain = torch.ones(settings.vocabulary, dtype=torch.bool)
    plain[list({settings.mask, *settings.special})] = False
    if not plain.any():
        raise InputError("every id of the vocabulary is special; there is no word left to choose or to draw.")
    return plain.to(device), plain.nonzero().squeeze(1).to(device)


def _chosen(ids: Tensor, settings: MaskSettings, words: Tensor | None, generator: torch.Generator | None) -> Tensor:
    if settings.unit != "word" and words is not None:
        raise InputError(f'words were given, but masking is by {settings.unit}. Leave them out, or use unit="word".')
    if settings.unit == "span":
        return _spans(len(ids), settings, generator, ids.device)
    luck = torch.rand(ids.shape, generator=generator, device=ids.device)
    if settings.unit == "word":
        luck = luck[_numbers(ids, words)]
    return luck < settings.rate


def _numbers(ids: Tensor, words: Tensor | None) -> Tensor:
    """Words counted through the batch, from starts or from ids that change from word to word."""
    if words is None:
        raise InputError("masking whole words needs `words`: where words start, or a word id for each token.")
    if words.shape != ids.shape:
        raise InputError(f"{ids.numel()} tokens but {words.numel()} entries in words; give one for each.")
    if words.dtype != torch.bool:
        words = words.diff(prepend=words[:1]) != 0
    numbers = words.long().cumsum(0)
    return numbers - numbers[:1]


def _spans(count: int, settings: MaskSettings, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Runs that begin anywhere, also before the first token, so that each token has the same chance to be in one.

    A run that meets the end of a sequence goes on in the next as a shorter one of its own.
    """
    ahead, size = settings.longest - 1, count + settings.longest - 1
    luck = torch.rand(2, size, generator=generator, device=device, dtype=torch.float64)
    starts = luck[0] < _start_rate(settings.rate, settings.stop, settings.longest)
    lengths = torch.ones_like(starts, dtype=torch.int64)
    if settings.stop < 1:
        keep = torch.log1p(torch.tensor(-settings.stop, dtype=torch.float64, device=device))
        lengths = (torch.log1p(-luck[1]) / keep).floor().long().clamp(max=ahead) + 1
    here = torch.arange(size, device=device)
    reach = torch.where(starts, here + lengths, 0).cummax(0).values
    return (reach > here)[ahead:]


@functools.cache
def _start_rate(rate: float, stop: float, longest: int) -> float:
    """The chance that a span starts at a token, so that a share `rate` of all tokens lies in one."""
    low, high = 0.0, 1.0
    for _ in range(60):
        start = (low + high) / 2
        open_ = 1.0
        for before in range(longest):
            open_ *= 1 - start * (1 - stop) ** before
        low, high = (start, high) if 1 - open_ < rate else (low, start)
    return (low + high) / 2


def _runs(places: Tensor) -> Tensor:
    """The number of the run of neighbours that each place belongs to."""
    breaks = places.diff(prepend=places[:1]) > 1
    return breaks.long().cumsum(0)
