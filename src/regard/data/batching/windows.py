"""Overlapping windows over a text that is longer than the maximum length of a network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from regard.errors import InputError


@dataclass(frozen=True)
class Window:
    """Tokens `start` to `end` (exclusive) of a text, of which `own_start` to `own_end` are owned by this window."""

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

    @property
    def context_only(self) -> Window:
        """The same tokens as context, not owned."""
        return Window(self.start, self.end, self.start, self.start)


def windows(length: int, *, size: int, overlap: int) -> list[Window]:
    """Cover `length` tokens with windows of `size` tokens; adjacent ones share at least `overlap` tokens.

    The last window is moved left until it is full. Every token is owned by exactly one window: where two overlap, the
    cut is in the middle, so that a token is taken from the window with the most context around it. A text of at most
    `size` tokens, also an empty one, is one window.
    """
    if length < 0:
        raise InputError(f"the length of a text is {length}, expected at least 0.")
    if size < 1:
        raise InputError(f"the window size is {size}, expected at least 1 token.")
    if not 0 <= overlap < size:
        raise InputError(f"windows of {size} tokens cannot overlap by {overlap}; use 0 to {size - 1}.")
    if length <= size:
        return [Window(0, length, 0, length)]
    starts = [*range(0, length - size, size - overlap), length - size]
    cuts = [0, *((left + size + right + 1) // 2 for left, right in pairwise(starts)), length]
    return [
        Window(start, start + size, own_start, own_end)
        for start, (own_start, own_end) in zip(starts, pairwise(cuts), strict=True)
    ]


def paired_windows(first: int, second: int, *, size: int, overlap: float) -> list[tuple[Window, Window]]:
    """Windows over two texts in one sequence, so that every token of both is owned by exactly one window.

    If the shorter text takes at most half of `size`, every window of the longer text is combined with all of the
    shorter one. Otherwise each text gets half of `size`, and the i-th windows of both are combined; the text with fewer
    windows repeats its last one. Repeated tokens are not owned again. `overlap` is the fraction of a window that the
    next window of the same text repeats.
    """
    if size < 2:
        raise InputError(f"the window size for two texts is {size}, expected at least 2 tokens.")
    if first + second <= size:
        sizes = first, second
    elif min(first, second) <= size // 2:
        sizes = (first, size - first) if first <= second else (size - second, second)
    else:
        smaller, larger = size // 2, size - size // 2
        sizes = (smaller, larger) if first <= second else (larger, smaller)
    cuts = [
        windows(length, size=max(own, 1), overlap=int(own * overlap))
        for length, own in zip((first, second), sizes, strict=True)
    ]
    count = max(map(len, cuts))
    left, right = (parts + [parts[-1].context_only] * (count - len(parts)) for parts in cuts)
    return list(zip(left, right, strict=True))
