"""Sequences are packed into nearly full bins, each of them once."""

import numpy as np
import pytest

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
