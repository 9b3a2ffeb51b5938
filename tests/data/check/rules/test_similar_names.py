"""Names with a typo or other punctuation are similar; distinct names are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.check.rules.similar_names import edit_distance, similar_names


@pytest.mark.parametrize(
    ("counts", "results"),
    [
        ({"positive": 9, "postive": 1}, [("postive", "positive")]),
        ({"positive": 9, "negative": 3}, []),
        ({"entailment": 9, "not_entailment": 3}, []),
        ({"Sports": 9, "sports": 9}, [("sports", "Sports")]),
        ({"LOC": 90, "LCO": 1}, [("LCO", "LOC")]),
        ({"class1": 90, "class2": 1}, []),
        ({"c": 9, "c++": 1}, []),
        ({"1": 9, "-1": 1, "10": 1}, []),
        ({"typical": 90, "atypical": 1}, []),
        ({"PER": 90, "ORG": 1, "LOC": 3}, []),
    ],
)
def test_similar_names(counts: dict[str, int], results: list[tuple[str, str]]) -> None:
    assert [(rare, frequent) for rare, frequent, _ in similar_names(counts)] == results


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=6))
def test_edit_distance_is_a_metric(one: str, other: str) -> None:
    assert edit_distance(one, other) == edit_distance(other, one)
    assert (edit_distance(one, other) == 0) == (one == other)
    assert edit_distance(one, one + "x") == 1
