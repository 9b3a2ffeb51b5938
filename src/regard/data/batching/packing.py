"""Pack sequences into bins with a token limit: nearly full, and each with long and short sequences.

1. The shuffled sequences are split into pools of a few dozen bins. All pools are packed at the same time with array
   operations, so the number of Python steps does not grow with the number of sequences.
2. In a pool, sequences are assigned from the longest to the shortest, each to the bin with the fewest tokens. If bins
   have few sequences, only the first quarter is assigned like this, and the rest to the fullest bin that it fits into.
3. Sequences that do not fit into a bin of their pool are packed again together with later sequences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from regard.text.flat_tokens import Ints

POOL = 32  # bins packed together
SLACK = 0.005  # fraction of a bin that is left empty, so that the last sequences still fit
FEW = 10  # below this number of sequences per bin, full bins matter more than even ones
FINE = 1024  # sequences shorter than 1 / FINE of a bin are bundled


@dataclass(frozen=True)
class Bins:
    """`rows[bounds[i] : bounds[i + 1]]` are the sequences of bin `i`."""

    rows: Ints
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1


def pack(order: Ints, lengths: Ints, *, tokens: int, sequences: int | None = None) -> Bins:
    """Every sequence of `order` in one bin of at most `tokens` tokens and at most `sequences` sequences.

    No length may be above `tokens`.
    """
    if sequences is not None:
        return _packed(order, lengths[order], tokens=tokens, max_sequences=sequences)
    bundles, bundled_order = _bundled(order, lengths, tokens // FINE)
    sizes = np.add.reduceat(lengths[bundled_order], bundles[:-1]) if len(order) else lengths[:0]
    packed = _packed(np.arange(len(sizes)), sizes, tokens=tokens, max_sequences=None)
    counts = np.diff(bundles)[packed.rows]
    ends = np.concatenate(([0], np.cumsum(counts)))
    source = np.arange(len(order)) - np.repeat(ends[:-1] - bundles[packed.rows], counts)
    return Bins(bundled_order[source], ends[packed.bounds])


def _bundled(order: Ints, lengths: Ints, fine: int) -> tuple[Ints, Ints]:
    """Bounds of bundles, and the order of the sequences in them: adjacent short sequences together, others alone.

    A bundle has at most twice `fine` tokens. Bundles are in the order of their first sequence.
    """
    sizes = lengths[order]
    short = sizes <= fine
    key = np.arange(len(order)) + len(order)
    key[short] = np.cumsum(sizes[short]) // max(fine, 1)
    _, first, name = np.unique(key, return_index=True, return_inverse=True)
    start = first[name]
    by_bundle = np.argsort(start, kind="stable")
    cuts = np.flatnonzero(np.diff(start[by_bundle], prepend=-1))
    return np.append(cuts, len(order)).astype(np.int64), order[by_bundle]


def _packed(names: Ints, sizes: Ints, *, tokens: int, max_sequences: int | None) -> Bins:
    """Pack all pools but the last; repeat with the last pool and what did not fit, until nothing is left."""
    max_sequences = len(names) if max_sequences is None else max_sequences
    rows, counts = [names[:0]], [names[:0]]
    remaining = np.arange(len(names))
    while len(remaining):
        by_count = len(remaining) * tokens > int(sizes[remaining].sum()) * max_sequences
        filling = np.full(len(remaining), 1.0 / max_sequences) if by_count else sizes[remaining] / tokens
        filled = np.cumsum(filling) / (1 - SLACK)
        pool = (filled // POOL).astype(np.int64)
        last = int(pool[-1])
        if last:
            current, postponed = remaining[pool < last], remaining[pool == last]
            bins, pool = POOL, pool[pool < last]
        else:
            current, postponed = remaining, remaining[:0]
            bins = math.ceil(filled[-1])
        assigned = _fill(sizes[current], pool, bins=bins, tokens=tokens, max_sequences=max_sequences)
        placed = assigned >= 0
        by_bin = np.argsort(assigned[placed], kind="stable")
        counts_per_pool = np.bincount(assigned[placed])
        rows.append(names[current[placed][by_bin]])
        counts.append(counts_per_pool[counts_per_pool > 0])
        remaining = np.sort(np.concatenate((current[~placed], postponed)))
        if last:  # leftovers are spread among later sequences
            remaining = remaining[_golden_order(len(remaining))]
    bounds = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
    return Bins(np.concatenate(rows), bounds.astype(np.int64))


def _golden_order(count: int) -> Ints:
    """A permutation that moves neighbors apart evenly, by steps of the golden ratio."""
    return np.argsort((np.arange(count) * 0.6180339887498949) % 1.0, kind="stable")


def _fill(sizes: Ints, pool: Ints, *, bins: int, tokens: int, max_sequences: int) -> Ints:
    """The bin of each sequence, numbered over all pools; -1 if it fits into no bin of its pool."""
    pools = int(pool[-1]) + 1
    by_size = np.lexsort((-sizes, pool))
    counts_per_pool = np.bincount(pool, minlength=pools)
    deep = int(counts_per_pool.max())
    rank = np.arange(len(sizes)) - np.repeat(np.cumsum(counts_per_pool) - counts_per_pool, counts_per_pool)
    size_at = np.full((deep, pools), tokens + 1)  # positions after the end of a pool fit nowhere
    size_at[rank, pool] = sizes[by_size]
    spread = deep if deep > FEW * bins else -(-deep // 4)
    chosen = np.full((deep, pools), -1)
    loads, counts, each = np.zeros((pools, bins), np.int64), np.zeros((pools, bins), np.int64), np.arange(pools)
    for step, size in enumerate(size_at):
        if step < spread:
            bin = loads.argmin(1)
        else:
            bin = np.where(loads + size[:, None] <= tokens, loads, -1).argmax(1)
        fits = loads[each, bin] + size <= tokens
        loads[each, bin] += np.where(fits, size, 0)
        if max_sequences < deep:
            counts[each, bin] += fits
            full = counts[each, bin] >= max_sequences
            loads[each[full], bin[full]] = tokens + 1
        chosen[step] = np.where(fits, bin + each * bins, -1)
    assigned = np.empty(len(sizes), np.int64)
    assigned[by_size] = chosen[rank, pool]
    return assigned
