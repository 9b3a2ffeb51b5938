"""Ids, segments and texts from Python are checked."""

import numpy as np
import pytest
import torch

from regard.data.inputs import check_ids, check_segments, check_texts
from regard.errors import InputError


def test_ids_of_any_type():
    for ids in ([[5, 6], [7]], [np.array([5, 6]), np.array([7])], [torch.tensor([5, 6]), (7,)]):
        assert check_ids(ids, "ids", vocabulary=10, max_tokens=2) == [[5, 6], [7]]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "empty list"),
        ([[1], []], "sequence 1 is empty"),
        ([[1, 10]], "position 1: id 10 is outside the vocabulary, whose ids are 0 to 9"),
        ([[1, 2, 3]], "has 3 tokens; the limit of this network is 2"),
        ([[0.5]], "something else than whole numbers"),
        (5, "must be a list of sequences"),
    ],
)
def test_invalid_ids_are_refused(ids, message):
    with pytest.raises(InputError, match=message):
        check_ids(ids, "ids", vocabulary=10, max_tokens=2)


def test_segments():
    assert check_segments([[0, 1]], [[5, 6]], kinds=2) == [[0, 1]]
    with pytest.raises(InputError, match="2 ids but 1 segments"):
        check_segments([[0]], [[5, 6]], kinds=2)
    with pytest.raises(InputError, match="outside 0 to 1"):
        check_segments([[0, 2]], [[5, 6]], kinds=2)


def test_texts():
    assert check_texts({"text": ["a", "b"]}) == ["a", "b"]
    for texts, message in (("a", r"Write \[text\]"), ([], "is empty"), (["a", " "], "text 1 is empty")):
        with pytest.raises(InputError, match=message):
            check_texts(texts)
