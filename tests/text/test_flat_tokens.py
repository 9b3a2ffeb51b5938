"""Index arrays of flat data."""

import numpy as np

from regard.text.flat_tokens import bounds_of, ranges


def test_ranges():
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


def test_bounds():
    assert bounds_of([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert bounds_of([]).tolist() == [0]
