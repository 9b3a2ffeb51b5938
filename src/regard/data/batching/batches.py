"""Batches bounded by tokens: shuffled, nearly full, shared among ranks, and found again in constant time.

The layout of an epoch is a pure function of the lengths, the settings and the number of the epoch. Nothing has to be
read again to go on in the middle of one: `Plan.at(epoch, step)` is the position, `Plan.state()` is what to store.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.packing import Bins, Ints, pack
from regard.errors import InputError


@dataclass(frozen=True)
class BatchSettings:
    """How sequences become batches. Every rank has the same settings but for its own number."""

    tokens: int  # the most tokens of a batch
    sequences: int | None = None  # the most sequences of a batch
    seed: int = 0
    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        for name in ("tokens", "sequences", "ranks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"batches: {name} is {value}, but it must be at least 1.")
        if not 0 <= self.rank < self.ranks:
            raise InputError(f"batches: rank {self.rank} of {self.ranks}; ranks are numbered 0 to {self.ranks - 1}.")
        if self.seed < 0:
            raise InputError(f"batches: the seed is {self.seed}, but it must be at least 0.")


@dataclass(frozen=True)
class Batch:
    """Which sequences are read at a step of an epoch, the longest first. `epoch` and `step` are its position."""

    epoch: int
    step: int
    rows: Ints


class BatchPlan:
    """The batches of one rank, from a position to the end of its epoch.

    Every sequence is in exactly one batch of one rank, and every rank takes the same number of steps. Where the
    batches do not divide among the ranks, those with the most sequences are cut in two until they do: nothing is
    repeated and nothing is left out. Where there are not enough sequences even for that, the last step of the epoch
    gives some ranks a batch without rows.
    """

    def __init__(
        self, lengths: npt.ArrayLike, settings: BatchSettings, *, epoch: int = 0, step: int = 0, known: str = ""
    ) -> None:
        self.lengths = np.asarray(lengths)
        self.settings = settings
        self.epoch, self.step = epoch, step
        if epoch < 0 or step < 0:
            raise InputError(f"batches: epoch {epoch}, step {step} is no position; both count from 0.")
        if not known:
            _check(self.lengths, settings)
        self.fingerprint = known or _fingerprint(self.lengths, settings)

    def at(self, epoch: int, step: int = 0) -> BatchPlan:
        """The same batches from another position."""
        plan = BatchPlan(self.lengths, self.settings, epoch=epoch, step=step, known=self.fingerprint)
        if epoch == self.epoch and "layout" in self.__dict__:
            plan.__dict__["layout"] = self.layout
        return plan

    def state(self) -> dict[str, Any]:
        """The position in a form that can be written down. It is the same on every rank."""
        return {"epoch": self.epoch, "step": self.step, "batches": self.fingerprint}

    def resume(self, state: Mapping[str, Any]) -> BatchPlan:
        """The plan at a stored position; refused where it was stored for other data or other settings."""
        if state.get("batches") != self.fingerprint:
            raise InputError(
                "the stored position belongs to other batches: the data, the tokens or sequences of a batch, the seed "
                "or the number of ranks has changed. Start again from epoch 0, or give what was given then."
            )
        return self.at(int(state["epoch"]), int(state["step"]))

    @functools.cached_property
    def layout(self) -> Bins:
        """All batches of the epoch, of every rank: step by step, in each step rank by rank."""
        return layout(self.lengths, self.settings, self.epoch)

    @property
    def steps(self) -> int:
        """How many steps the epoch has, on every rank."""
        return len(self.layout) // self.settings.ranks

    def rows(self, step: int) -> Ints:
        """The sequences of this rank at that step."""
        if not 0 <= step < self.steps:
            raise InputError(f"step {step} was asked for, but epoch {self.epoch} has {self.steps}, counted from 0.")
        here = step * self.settings.ranks + self.settings.rank
        return self.layout.rows[self.layout.bounds[here] : self.layout.bounds[here + 1]]

    def __iter__(self) -> Iterator[Batch]:
        for step in range(self.step, self.steps):
            yield Batch(self.epoch, step, self.rows(step))

    @property
    def fill(self) -> float:
        """The tokens of the epoch as a share of what its batches could hold."""
        room = len(self.layout) * self.settings.tokens
        return float(self.lengths.sum() / room) if room else 1.0


def layout(lengths: npt.NDArray[Any], settings: BatchSettings, epoch: int) -> Bins:
    """Shuffle, pack, bring to a multiple of the ranks, shuffle the batches; the same every time it is asked for."""
    sizes = lengths.astype(np.int64)
    order = shuffled(len(sizes), settings.seed, epoch, 0)
    bins = pack(order, sizes, tokens=settings.tokens, sequences=settings.sequences)
    bins = _arranged(bins, shuffled(len(bins), settings.seed, epoch, 1))
    bins = _divided(bins, sizes, settings.ranks)
    return _longest_first(bins, sizes)


def shuffled(count: int, *keys: int) -> Ints:
    """A permutation that depends on the keys alone, and on no version of numpy: its raw generators never change."""
    words = hashlib.blake2b(repr(keys).encode(), digest_size=16).digest()
    bits = np.random.Philox(key=int.from_bytes(words, "little")).random_raw(count)
    return np.argsort(bits, kind="stable")


def _arranged(bins: Bins, order: Ints) -> Bins:
    """The bins in another order."""
    counts = np.diff(bins.bounds)[order]
    ends = np.concatenate(([0], np.cumsum(counts)))
    places = np.arange(len(bins.rows)) + np.repeat(bins.bounds[order] - ends[:-1], counts)
    return Bins(bins.rows[places], ends.astype(np.int64))


def _divided(bins: Bins, sizes: Ints, ranks: int) -> Bins:
    """As many bins as divide among the ranks: large ones cut in two where they stand, empty ones only at the end."""
    missing = -len(bins) % ranks
    if not missing:
        return bins
    parts = [bins.rows[start:end] for start, end in zip(bins.bounds[:-1], bins.bounds[1:], strict=True)]
    for _ in range(missing):
        widest = max(range(len(parts)), key=lambda number: len(parts[number]))
        if len(parts[widest]) < 2:
            parts.append(bins.rows[:0])
            continue
        rows = parts[widest][np.argsort(-sizes[parts[widest]], kind="stable")]
        parts[widest : widest + 1] = [rows[::2], rows[1::2]]
    bounds = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    return Bins(np.concatenate(parts), bounds.astype(np.int64))


def _longest_first(bins: Bins, sizes: Ints) -> Bins:
    """Sorted in each bin, so that equal lengths lie side by side and attention on the CPU needs no copy."""
    owners = np.repeat(np.arange(len(bins)), np.diff(bins.bounds))
    return Bins(bins.rows[np.lexsort((-sizes[bins.rows], owners))], bins.bounds)


def _check(lengths: npt.NDArray[Any], settings: BatchSettings) -> None:
    if lengths.ndim != 1 or not (np.issubdtype(lengths.dtype, np.integer) or len(lengths) == 0):
        raise InputError(
            f"batches: lengths of type {lengths.dtype} and shape {lengths.shape} were given, "
            "but one whole number a sequence was expected."
        )
    if len(lengths) == 0:
        raise InputError("batches: there is no sequence; give at least one.")
    shortest, longest = int(lengths.argmin()), int(lengths.argmax())
    if lengths[shortest] < 1:
        raise InputError(f"batches: sequence {shortest} has {lengths[shortest]} tokens. Leave empty ones out.")
    if lengths[longest] > settings.tokens:
        raise InputError(
            f"batches: sequence {longest} has {lengths[longest]} tokens, but a batch holds {settings.tokens}. "
            f"Raise tokens to at least {lengths[longest]}, or cut long texts into windows."
        )


def _fingerprint(lengths: npt.NDArray[Any], settings: BatchSettings) -> str:
    """What the batches depend on, but for the rank."""
    known = hashlib.blake2b(digest_size=16)
    known.update(repr((settings.tokens, settings.sequences, settings.seed, settings.ranks, len(lengths))).encode())
    known.update(np.ascontiguousarray(lengths, np.int64).tobytes())
    return known.hexdigest()
