"""Split texts into sequences that fit a network, and group sequences into batches by tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.data.batching.windows import windows
from regard.errors import InputError, setting
from regard.text.encoding import Encoding


@dataclass(frozen=True)
class SequenceWindow:
    """A text, or one window of it. `keep` is the slice of tokens whose outputs are used for the text."""

    text: int
    ids: Sequence[int]
    segments: Sequence[int]
    keep: slice
    last: bool


def split_into_windows(row: int, encoding: Encoding, max_tokens: int | None) -> Iterator[SequenceWindow]:
    """Windows of a text, each with the special tokens that are before and after the whole text."""
    ids, segment_ids = list(encoding.ids), list(encoding.segments)
    if max_tokens is None or len(ids) <= max_tokens:
        yield SequenceWindow(row, ids, segment_ids, slice(0, len(ids)), last=True)
        return
    special = list(encoding.special)
    head = next(i for i, flag in enumerate(special) if not flag)
    tail = next(i for i, flag in enumerate(reversed(special)) if not flag)
    capacity = max_tokens - head - tail
    parts = windows(len(ids) - head - tail, size=capacity, overlap=capacity // 4)
    for window in parts:
        inside = slice(head + window.start, head + window.end)
        first, final = window is parts[0], window is parts[-1]
        owned = window.own
        yield SequenceWindow(
            text=row,
            ids=ids[:head] + ids[inside] + ids[len(ids) - tail :],
            segments=segment_ids[:head] + segment_ids[inside] + segment_ids[len(ids) - tail :],
            keep=slice(0 if first else head + owned.start, head + owned.stop + (tail if final else 0)),
            last=final,
        )


def token_batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Batches of rows with at most `tokens` tokens, longest first, so that rows of equal length are adjacent.

    Rows of one length stay in order, and so do the windows of a text, which are all full.
    """
    if tokens < 1:
        raise InputError(f"{setting('batch_tokens')} is {tokens}, expected at least 1 token.")
    rows: list[int] = []
    token_count = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if rows and token_count + lengths[row] > tokens:
            yield rows
            rows, token_count = [], 0
        rows.append(row)
        token_count += lengths[row]
    if rows:
        yield rows
