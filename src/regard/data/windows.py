"""Overlapping windows over a text that is longer than a network has places for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from regard.errors import InputError


@dataclass(frozen=True)
class Window:
    """Tokens `start` to `end` (exclusive) of a run, of which `own_start` to `own_end` are answered by this window."""

    start: int
    end: int
    own_start: int
    own_end: int

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def own(self) -> slice:
        """The owned tokens, counted from the start of the window."""
        return slice(self.own_start - self.start, self.own_end - self.start)


def windows(length: int, *, room: int, overlap: int) -> list[Window]:
    """Cover `length` tokens with windows of `room` tokens, neighbours sharing at least `overlap`.

    The last window is moved left until it is full. Every token is owned by exactly one window: where two overlap, the
    cut is in the middle, so that a token is taken from the window that shows most of what stands around it. A run
    that fits, an empty one too, is one window.
    """
    if length < 0:
        raise InputError(f"a run of {length} tokens was to be cut into windows; its length must be at least 0.")
    if room < 1:
        raise InputError(f"windows need room for at least 1 token, not {room}.")
    if not 0 <= overlap < room:
        raise InputError(f"windows of {room} tokens cannot overlap by {overlap}; use 0 to {room - 1}.")
    if length <= room:
        return [Window(0, length, 0, length)]
    starts = [*range(0, length - room, room - overlap), length - room]
    cuts = [0, *((left + room + right + 1) // 2 for left, right in pairwise(starts)), length]
    return [
        Window(start, start + room, own_start, own_end)
        for start, (own_start, own_end) in zip(starts, pairwise(cuts), strict=True)
    ]
