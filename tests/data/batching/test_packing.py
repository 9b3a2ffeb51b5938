"""Sequences are packed into nearly full bins, each of them once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batching import packing
from regard.data.batching.packing import pack


@pytest.mark.parametrize("sequences", [None, 6])
def test_every_sequence_is_in_one_bin_within_the_limits(sequences):
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 100, 500)
    bins = pack(generator.permutation(500), lengths, tokens=256, sequences=sequences)
    assert sorted(bins.rows.tolist()) == list(range(500))
    rows = [bins.rows[start:end] for start, end in zip(bins.bounds[:-1], bins.bounds[1:], strict=True)]
    assert len(rows) == len(bins)
    assert max(int(lengths[one].sum()) for one in rows) <= 256
    if sequences is not None:
        assert max(map(len, rows)) <= sequences
    else:
        assert len(bins) <= 1.05 * lengths.sum() / 256 + 1


def test_no_sequences():
    assert len(pack(np.array([], np.int64), np.array([], np.int64), tokens=8)) == 0


@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=600),
    st.integers(64, 300),
    st.none() | st.integers(1, 12),
)
def test_pools_packed_alone_and_together_have_the_same_bins(lengths, tokens, sequences):
    order, sizes = np.arange(len(lengths)), np.array(lengths)
    bins = []
    for many in (1, len(lengths) + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packing, "MANY", many)
            bins.append(pack(order, sizes, tokens=tokens, sequences=sequences))
    assert bins[0].rows.tolist() == bins[1].rows.tolist()
    assert bins[0].bounds.tolist() == bins[1].bounds.tolist()


@given(st.integers(1, 700), st.integers(1, 40), st.integers(5, 9))
def test_bins_that_are_full_by_count_are_as_few_as_possible(count, sequences, length):
    for limit in (sequences, None):
        bins = pack(np.arange(count), np.full(count, length), tokens=10 * max(sequences, count), sequences=limit)
        assert len(bins) == -(-count // (limit or count))
