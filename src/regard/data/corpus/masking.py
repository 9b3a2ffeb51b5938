"""Masking for masked language models: which tokens are replaced, by what, and their labels.

Works on flat tokens, on any device, without a loop. Masks are sampled again in every epoch (dynamic masking).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import InputError, setting

IGNORE = -100  # the label of a position without a target

Unit = Literal["token", "word", "span"]


@dataclass(frozen=True)
class MaskSettings:
    """By default as in BERT: 15 % of the tokens are selected; of these 80 % are masked, 10 % random, 10 % unchanged."""

    mask: int  # id of [MASK]
    vocabulary: int
    special: tuple[int, ...]  # ids that are never selected and never used as random tokens
    rate: float = 0.15
    mask_fraction: float = 0.8
    random_fraction: float = 0.1
    unit: Unit = "token"
    span_stop: float = 0.2  # probability that a span ends after each token (geometric lengths)
    max_span: int = 10  # maximum length of a span

    def __post_init__(self) -> None:
        if self.unit not in ("token", "word", "span"):
            raise InputError(f'{setting("mask_unit")} "{self.unit}" is not known. Choose one of: token, word, span.')
        if not 0 < self.rate < 1:
            raise InputError(f"{setting('mask_rate')} is {self.rate:g}, expected a fraction above 0 and below 1.")
        if min(self.mask_fraction, self.random_fraction) < 0 or self.mask_fraction + self.random_fraction > 1:
            raise InputError(
                f"mask_fraction {self.mask_fraction} and random_fraction {self.random_fraction} must be at least 0 "
                "and add up to at most 1."
            )
        if not 0 < self.span_stop <= 1 or self.max_span < 1:
            raise InputError(
                f"span_stop is {self.span_stop:g} and max_span {self.max_span}, expected a fraction above 0 and at "
                "most 1, and at least 1 token."
            )
        if any(not 0 <= token < self.vocabulary for token in (self.mask, *self.special)):
            raise InputError(f"special ids {(self.mask, *self.special)} must be in a vocabulary of {self.vocabulary}.")


@dataclass(frozen=True, eq=False)
class MaskedTokens:
    """Tokens after masking, the flat positions that were selected, and the original tokens there."""

    ids: Tensor  # (N,)
    positions: Tensor  # (M,) in ascending order
    labels: Tensor  # (M,)


def mask_tokens(
    ids: Tensor, settings: MaskSettings, *, words: Tensor | None = None, generator: torch.Generator | None = None
) -> MaskedTokens:
    """Select tokens, replace them, and return their labels. `words` (for unit "word"): word starts, or word ids.

    Every token that is not special is selected with the same probability, `rate`, in each of the three units.
    """
    _check_flat(ids)
    selected = _select(ids, settings, words, generator)[0] & _maskable(ids, settings)
    positions = selected.nonzero().squeeze(1)
    labels = ids[positions]
    return MaskedTokens(
        ids.index_copy(0, positions, _replaced(labels, positions, settings, generator)), positions, labels
    )


def mask_fixed(
    ids: Tensor,
    settings: MaskSettings,
    *,
    positions: int,
    words: Tensor | None = None,
    generator: torch.Generator | None = None,
    valid: Tensor | None = None,
) -> MaskedTokens:
    """`mask_tokens` with fixed shapes and without synchronizing the device: for compiled steps and CUDA graphs.

    The result has exactly `positions` positions: first the selected ones in ascending order, then others with the label
    IGNORE. If more tokens are selected than `positions`, whole tokens, words or spans are left out at random;
    `max_masked` returns a number that is large enough. `valid` marks the tokens that may be selected.
    """
    _check_flat(ids)
    if not 0 <= positions <= len(ids):
        raise InputError(
            f"{positions} positions were requested, but there are {len(ids)} tokens. Give at most that many."
        )
    selected, keys = _select(ids, settings, words, generator)
    selected = selected & _maskable(ids, settings)
    if valid is not None:
        selected = selected & valid
    if keys is None:
        runs = (selected & ~selected.roll(1)).cumsum(0)  # number of the run, counted from 0 or 1
        keys = _uniform((len(ids) + 1,), ids.device, generator)[runs]
    keys = torch.where(selected, keys, 2.0)
    lowest = F.pad(keys, (0, 1), value=3.0).topk(positions + 1, largest=False)
    values = lowest.values[:-1]
    indices = lowest.indices[:-1]
    complete = (values < 2) & (values < lowest.values[-1:])  # a run that does not fit as a whole is left out
    order = torch.where(complete, indices, indices + len(ids)).sort().values
    at = order % max(len(ids), 1)
    is_masked = order < len(ids)
    original = ids[at]
    replacement = _replaced(original, at, settings, generator)
    masked_ids = ids.index_copy(0, at, torch.where(is_masked, replacement, original))
    return MaskedTokens(masked_ids, at, torch.where(is_masked, original, IGNORE))


def max_masked(tokens: int, rate: float, *, unit: Unit = "token") -> int:
    """Upper bound on masked tokens: mean plus four standard deviations, a multiple of 64, at most `tokens`."""
    unit_tokens = {"token": 1, "word": 3, "span": 7}[unit]  # typical number of tokens that are selected together
    needed = tokens * rate + 4 * math.sqrt(unit_tokens * tokens * rate * (1 - rate))
    return min(tokens, 64 * math.ceil(needed / 64))


def _check_flat(ids: Tensor) -> None:
    if ids.dim() != 1:
        raise InputError(f"flat ids were expected, but their shape is {tuple(ids.shape)}.")


def _replaced(labels: Tensor, positions: Tensor, settings: MaskSettings, generator: torch.Generator | None) -> Tensor:
    """The replacements of the selected tokens: the mask, a random token, or the token itself."""
    uniform = _uniform(positions.shape, positions.device, generator)
    if settings.unit == "span":
        uniform = uniform[_runs(positions)]  # a span is masked, replaced or kept as a whole
    random_ids = _random_ids(labels, settings, generator)
    replacement = torch.where(uniform < settings.mask_fraction + settings.random_fraction, random_ids, labels)
    return replacement.masked_fill(uniform < settings.mask_fraction, settings.mask)


def _uniform(
    shape: Sequence[int], device: torch.device, generator: torch.Generator | None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Random numbers from 0 to 1. torch.compile accepts a dynamic size only if no `generator` argument is passed."""
    if generator is None:
        return torch.rand(shape, device=device, dtype=dtype)
    return torch.rand(shape, generator=generator, device=device, dtype=dtype)


def _maskable(ids: Tensor, settings: MaskSettings) -> Tensor:
    """Which tokens are not special."""
    maskable = torch.ones_like(ids, dtype=torch.bool)
    for first, end in _special(settings):
        maskable = maskable & ((ids < first) | (ids >= end))
    return maskable


def _random_ids(like: Tensor, settings: MaskSettings, generator: torch.Generator | None) -> Tensor:
    """Random ids that are not special, all equally likely."""
    skipped = _special(settings)
    count = settings.vocabulary - sum(end - first for first, end in skipped)
    if count == 0:
        raise InputError("every id of the vocabulary is special; there is no token to mask or to sample.")
    if generator is None:
        random_ids = torch.randint(count, like.shape, device=like.device)
    else:
        random_ids = torch.randint(count, like.shape, generator=generator, device=like.device)
    for first, end in skipped:
        random_ids = torch.where(random_ids >= first, random_ids + (end - first), random_ids)
    return random_ids.to(like.dtype)


def _special(settings: MaskSettings) -> list[tuple[int, int]]:
    """The special ids as sorted ranges: no lookup table on the device, and constants for the compiler."""
    ranges: list[tuple[int, int]] = []
    for token in sorted({settings.mask, *settings.special}):
        if ranges and ranges[-1][1] == token:
            ranges[-1] = (ranges[-1][0], token + 1)
        else:
            ranges.append((token, token + 1))
    return ranges


def _select(
    ids: Tensor, settings: MaskSettings, words: Tensor | None, generator: torch.Generator | None
) -> tuple[Tensor, Tensor | None]:
    """Which tokens are selected, including special ones, and the random numbers they are selected by."""
    if settings.unit != "word" and words is not None:
        raise InputError(f'words were given, but masking is by {settings.unit}. Leave them out, or use unit="word".')
    if settings.unit == "span":
        return _spans(len(ids), settings, generator, ids.device), None
    uniform = _uniform(ids.shape, ids.device, generator)
    if settings.unit == "word":
        uniform = uniform[_numbers(ids, words)]
    return uniform < settings.rate, uniform


def _numbers(ids: Tensor, words: Tensor | None) -> Tensor:
    """The number of each token's word in the batch, from word starts or from word ids."""
    if words is None:
        raise InputError("masking whole words needs `words`: where words start, or a word id for each token.")
    if words.shape != ids.shape:
        raise InputError(f"{ids.numel()} tokens but {words.numel()} entries in words; give one for each.")
    if words.dtype != torch.bool:
        words = words.diff(prepend=words[:1]) != 0
    numbers = words.long().cumsum(0)
    return numbers - numbers[:1]


def _spans(count: int, settings: MaskSettings, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Random spans. They may start before the first token, so that every token is in a span with the same probability.

    A span that crosses the end of a sequence continues in the next sequence as a separate, shorter span.
    """
    ahead, size = settings.max_span - 1, count + settings.max_span - 1
    uniform = _uniform((2, size), device, generator, torch.float64)
    starts = uniform[0] < _start_rate(settings.rate, settings.span_stop, settings.max_span)
    lengths = torch.ones_like(starts, dtype=torch.int64)
    if settings.span_stop < 1:
        lengths = (torch.log1p(-uniform[1]) / math.log1p(-settings.span_stop)).floor().long().clamp(max=ahead) + 1
    position = torch.arange(size, device=device)
    reach = torch.where(starts, position + lengths, 0).cummax(0).values
    return (reach > position)[ahead:]


def _start_rate(rate: float, stop: float, max_span: int) -> float:
    """The probability that a span starts at a token, so that a fraction `rate` of all tokens is in a span."""
    low, high = 0.0, 1.0
    for _ in range(60):
        start = (low + high) / 2
        open_ = 1.0
        for before in range(max_span):
            open_ *= 1 - start * (1 - stop) ** before
        low, high = (start, high) if 1 - open_ < rate else (low, start)
    return (low + high) / 2


def _runs(positions: Tensor) -> Tensor:
    """The number of the run of adjacent tokens that each position belongs to."""
    breaks = positions.diff(prepend=positions[:1]) > 1
    return breaks.long().cumsum(0)
