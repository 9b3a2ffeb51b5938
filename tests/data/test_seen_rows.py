"""Rows that a model was trained on are counted from a sample of their hashes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.records import ClassifyRecord, PairRecord
from regard.data.seen_rows import SIZE, SeenRows, hash_sample


def _rows(*numbers: int, label: str = "a") -> list[ClassifyRecord]:
    return [ClassifyRecord(f"text {number}", label=label) for number in numbers]


def _counted(train: list[ClassifyRecord], other: list[ClassifyRecord]) -> SeenRows:
    seen = SeenRows(hash_sample(train))
    for record in other:
        seen.add(record)
    return seen


@given(st.sets(st.integers(0, 400), min_size=1, max_size=200), st.lists(st.integers(0, 400), max_size=100))
@settings(max_examples=60, deadline=None)
def test_few_training_rows_are_counted_exactly(train: set[int], other: list[int]) -> None:
    seen = _counted(_rows(*train), _rows(*other))
    both = sum(number in train for number in other)
    assert (seen.rows, seen.seen) == (len(other), both)
    if both >= max(0.02 * len(other), 1):
        assert seen.words == f"{both} of {len(other)} rows"
    else:
        assert seen.words is None


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_of_many_training_rows_the_fraction_is_estimated(fraction: float) -> None:
    known = round(fraction * 4000)
    seen = _counted(_rows(*range(20_000)), _rows(*range(known), *range(100_000, 104_000 - known)))
    assert len(seen.sample.split()) == SIZE
    assert 20 < seen.looked_up < 100
    assert seen.fraction == pytest.approx(fraction, abs=0.2)
    if fraction == 1:
        assert seen.words == "nearly all of the 4,000 rows"
    if 0 < fraction < 1:
        assert seen.words is not None
        assert seen.words.endswith(" % of the 4,000 rows")
        assert seen.words.startswith("about ")


def test_labels_and_spaces_around_the_text_do_not_count() -> None:
    assert _counted(_rows(1, 2), [ClassifyRecord(" text 1 ", label="b")]).seen == 1


def test_both_texts_of_a_pair_count() -> None:
    seen = SeenRows(hash_sample([PairRecord("one", "two", label="a")]))
    seen.add(PairRecord("one", "three", label="a"))
    seen.add(PairRecord("one", "two", label="b"))
    seen.add(PairRecord("two", "one", label="b"))
    assert (seen.rows, seen.seen) == (3, 2)


def test_one_row_of_many_says_nothing() -> None:
    known = hash_sample(_rows(*range(20_000)))
    for number in range(50):
        seen = SeenRows(known)
        seen.add(_rows(number)[0])
        assert seen.words is None


@pytest.mark.parametrize("sample", ["", "none", "0123456789abcdeg", "x" * 500, "zzzz " * 300])
def test_what_is_no_hash_is_not_read(sample: str) -> None:
    seen = SeenRows(sample)
    seen.add(_rows(1)[0])
    assert (seen.rows, seen.seen, seen.words) == (1, 0, None)


def test_equal_rows_are_stored_once() -> None:
    assert hash_sample(_rows(1, 1, 1)) == hash_sample(_rows(1))
