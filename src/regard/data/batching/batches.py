"""Batches bounded by tokens: shuffled, nearly full, and accessible by position in constant time.

The batches of an epoch are a pure function of the lengths, the settings and the number of the epoch, so training can
resume in the middle of an epoch from its number and step alone.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.packing import Bins, pack
from regard.errors import InputError
from regard.text.flat_tokens import Ints


@dataclass(frozen=True)
class BatchSettings:
    """How sequences become batches."""

    tokens: int  # maximum per batch
    sequences: int | None = None  # maximum per batch
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("tokens", "sequences"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"batches: {name} is {value}, but it must be at least 1.")
        if self.seed < 0:
            raise InputError(f"batches: the seed is {self.seed}, but it must be at least 0.")


@dataclass(frozen=True)
class Batch:
    """The sequences of one step of an epoch, longest first."""

    epoch: int
    step: int
    rows: Ints


class BatchPlan:
    """The batches from a position to the end of its epoch. Every sequence is in exactly one batch of an epoch."""

    def __init__(self, lengths: npt.ArrayLike, settings: BatchSettings, *, epoch: int = 0, step: int = 0) -> None:
        self.lengths = np.asarray(lengths)
        self.settings = settings
        self.epoch = epoch
        self.step = step
        if epoch < 0 or step < 0:
            raise InputError(f"batches: epoch {epoch}, step {step} is not a position; both count from 0.")
        _check_lengths(self.lengths, settings)

    def at(self, epoch: int, step: int = 0) -> BatchPlan:
        """The same batches from another position."""
        plan = BatchPlan(self.lengths, self.settings, epoch=epoch, step=step)
        if epoch == self.epoch and "layout" in self.__dict__:
            plan.__dict__["layout"] = self.layout
        return plan

    @functools.cached_property
    def layout(self) -> Bins:
        """All batches of the epoch, in order."""
        return epoch_batches(self.lengths, self.settings, self.epoch)

    @property
    def steps(self) -> int:
        """The number of batches of the epoch."""
        return len(self.layout)

    def rows(self, step: int) -> Ints:
        """The sequences of the batch at that step."""
        if not 0 <= step < self.steps:
            raise InputError(f"there is no step {step}: epoch {self.epoch} has {self.steps}, counted from 0.")
        return self.layout.rows[self.layout.bounds[step] : self.layout.bounds[step + 1]]

    def __iter__(self) -> Iterator[Batch]:
        for step in range(self.step, self.steps):
            yield Batch(self.epoch, step, self.rows(step))

    @property
    def fill(self) -> float:
        """The tokens of the epoch as a fraction of the capacity of its batches."""
        capacity = len(self.layout) * self.settings.tokens
        return float(self.lengths.sum() / capacity) if capacity else 1.0


def epoch_batches(lengths: npt.NDArray[Any], settings: BatchSettings, epoch: int) -> Bins:
    """Shuffle the sequences, pack them into batches, and shuffle the batches."""
    sizes = lengths.astype(np.int64)
    order = shuffled(len(sizes), settings.seed, epoch, 0)
    bins = pack(order, sizes, tokens=settings.tokens, sequences=settings.sequences)
    bins = _reordered(bins, shuffled(len(bins), settings.seed, epoch, 1))
    return _longest_first(bins, sizes)


def shuffled(count: int, *keys: int) -> Ints:
    """A permutation that depends only on the keys, and is the same in every version of numpy."""
    digest = hashlib.blake2b(repr(keys).encode(), digest_size=16).digest()
    bits = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(count)
    return np.argsort(bits, kind="stable")


def _reordered(bins: Bins, order: Ints) -> Bins:
    """The bins in another order."""
    counts = np.diff(bins.bounds)[order]
    ends = np.concatenate(([0], np.cumsum(counts)))
    source = np.arange(len(bins.rows)) + np.repeat(bins.bounds[order] - ends[:-1], counts)
    return Bins(bins.rows[source], ends.astype(np.int64))


def _longest_first(bins: Bins, sizes: Ints) -> Bins:
    """Sorted in each bin, so that equal lengths are adjacent and attention on the CPU needs no copy."""
    owners = np.repeat(np.arange(len(bins)), np.diff(bins.bounds))
    return Bins(bins.rows[np.lexsort((-sizes[bins.rows], owners))], bins.bounds)


def _check_lengths(lengths: npt.NDArray[Any], settings: BatchSettings) -> None:
    if lengths.ndim != 1 or not (np.issubdtype(lengths.dtype, np.integer) or len(lengths) == 0):
        raise InputError(
            f"batches: lengths of type {lengths.dtype} and shape {lengths.shape} were given, "
            "but one whole number per sequence was expected."
        )
    if len(lengths) == 0:
        raise InputError("batches: there is no sequence; expected at least one.")
    shortest, longest = int(lengths.argmin()), int(lengths.argmax())
    if lengths[shortest] < 1:
        raise InputError(f"batches: sequence {shortest} has {lengths[shortest]} tokens. Remove empty sequences.")
    if lengths[longest] > settings.tokens:
        raise InputError(
            f"batches: sequence {longest} has {lengths[longest]} tokens, but a batch is limited to {settings.tokens}. "
            f"Raise tokens to at least {lengths[longest]}, or split long texts into windows."
        )
