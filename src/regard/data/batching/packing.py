"""Pack sequences into bins with a token limit: nearly full, and each with long and short sequences.

1. The shuffled sequences are split into pools of a few dozen bins. Many pools are packed at the same time with array
   operations, so the number of Python steps does not grow with the number of sequences; a few, one after the other.
2. In a pool, sequences are assigned from the longest to the shortest, each to the bin with the fewest tokens. If bins
   have few sequences, only the first quarter is assigned like this, and the rest to the fullest bin that it fits into.
3. Sequences that do not fit into a bin of their pool are packed again together with later sequences.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np

from regard.text.flat_tokens import Ints

POOL = 32  # bins packed together
SLACK = 0.005  # fraction of a bin that is left empty, so that the last sequences still fit
FEW = 10  # below this number of sequences per bin, full bins matter more than even ones
MANY = 64  # from this number of pools on, packing all of them at the same time is faster
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
        if len(remaining) * tokens > int(sizes[remaining].sum()) * max_sequences:  # bins are full by count
            pool = np.arange(len(remaining)) // (POOL * max_sequences)
            needed = -(-len(remaining) // max_sequences)
        else:
            filled = np.cumsum(sizes[remaining] / tokens) / (1 - SLACK)
            pool = (filled // POOL).astype(np.int64)
            needed = math.ceil(filled[-1])
        last = int(pool[-1])
        if last:
            current, postponed = remaining[pool < last], remaining[pool == last]
            bins, pool = POOL, pool[pool < last]
        else:
            current, postponed = remaining, remaining[:0]
            bins = needed
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
    spread = deep if deep > FEW * bins else -(-deep // 4)
    assigned = np.empty(len(sizes), np.int64)
    if pools >= MANY:
        rank = np.arange(len(sizes)) - np.repeat(np.cumsum(counts_per_pool) - counts_per_pool, counts_per_pool)
        size_at = np.full((deep, pools), tokens + 1)  # positions after the end of a pool fit nowhere
        size_at[rank, pool] = sizes[by_size]
        chosen = _fill_together(size_at, spread, bins=bins, tokens=tokens, max_sequences=max_sequences)
        assigned[by_size] = chosen[rank, pool]
        return assigned
    ends = np.cumsum(counts_per_pool)
    for number, members in enumerate(np.split(by_size, ends[:-1])):
        chosen = _fill_one(sizes[members].tolist(), spread, bins=bins, tokens=tokens, max_sequences=max_sequences)
        assigned[members] = np.where(chosen >= 0, chosen + number * bins, -1)
    return assigned


def _fill_together(size_at: Ints, spread: int, *, bins: int, tokens: int, max_sequences: int) -> Ints:
    """Pack pools at the same time: (sequences, pools) their bins, for sizes of this shape, the longest first."""
    deep, pools = size_at.shape
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
    return chosen


def _fill_one(sizes: list[int], spread: int, *, bins: int, tokens: int, max_sequences: int) -> Ints:
    """Pack one pool as `_fill_together` does, with a queue of its bins. The longest sequence comes first."""
    chosen, counts = [-1] * len(sizes), [0] * bins
    emptiest = [(0, bin) for bin in range(bins)]  # a heap; full bins are removed
    for step, size in enumerate(sizes[:spread]):
        if emptiest and emptiest[0][0] + size <= tokens:
            load, bin = emptiest[0]
            chosen[step] = bin
            counts[bin] += 1
            if counts[bin] < max_sequences:
                heapq.heapreplace(emptiest, (load + size, bin))
            else:
                heapq.heappop(emptiest)
    by_load = sorted((load, -bin) for load, bin in emptiest)  # of equal bins the first is the last here
    for step, size in enumerate(sizes[spread:], spread):
        fullest = bisect_left(by_load, (tokens - size + 1, -bins)) - 1
        if fullest >= 0:
            load, negative = by_load.pop(fullest)
            chosen[step] = -negative
            counts[-negative] += 1
            if counts[-negative] < max_sequences:
                insort(by_load, (load + size, negative))
    return np.array(chosen, np.int64)
