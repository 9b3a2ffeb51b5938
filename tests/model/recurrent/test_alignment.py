"""Alignments of a target with its source."""

import pytest
import torch
from tests.model.recurrent.build import SOURCE, TARGET, build

from regard.errors import InputError
from regard.ragged import Ragged


def test_alignments_are_shares_of_the_source(network, pair):
    if network.config.score == "none":
        with pytest.raises(InputError, match="no attention"):
            network.alignment(*pair)
        return
    for weights, sources, targets in zip(network.alignment(*pair), SOURCE, TARGET, strict=True):
        assert weights.shape == (targets, sources)
        assert torch.allclose(weights.sum(1), torch.ones(targets, dtype=torch.float64))


def test_a_local_window_sees_its_width():
    network = build(score="dot", window=1)
    (weights,) = network.alignment(Ragged.of([[1, 2, 3, 4, 5]]), Ragged.of([[1, 2, 3, 4, 5, 6, 7]]))
    recorded = [(row > 0).nonzero().flatten().tolist() for row in weights]
    assert recorded == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4], [3, 4], [3, 4]]
