"""Viterbi decoding of tags, compared with all possible sequences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.tags import entities
from regard.metrics.entities import entity_spans
from regard.tasks.tag_decoding import TagConstraints

NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
PROBABILITY = st.sampled_from([0.0, 1e-30, 0.01, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0])


def is_possible(tags: tuple[str, ...], starts: list[bool]) -> bool:
    """The rule itself: I-X only after B-X or I-X of the word directly before it."""
    return all(
        not tag.startswith("I-") or (not starts[word] and word > 0 and tags[word - 1] in (f"B-{tag[2:]}", tag))
        for word, tag in enumerate(tags)
    )


@st.composite
def sentences(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    words = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(PROBABILITY, min_size=5, max_size=5), min_size=words, max_size=words))
    starts = [True, *draw(st.lists(st.booleans(), min_size=words - 1, max_size=words - 1))]
    return np.array(rows, np.float32), np.array(starts)


@given(sentences(), st.permutations(NAMES))
def test_no_possible_sequence_is_more_likely(sentence: tuple[np.ndarray, np.ndarray], names: list[str]) -> None:
    probabilities, starts = sentence
    scores = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny), dtype=np.float64)
    decoded = TagConstraints.of(names).decode(probabilities, starts)
    assert is_possible(tuple(names[tag] for tag in decoded), starts.tolist())

    def score(tags: tuple[int, ...]) -> float:
        return float(sum(scores[word, tag] for word, tag in enumerate(tags)))

    every = product(range(len(names)), repeat=len(probabilities))
    best = max(score(tags) for tags in every if is_possible(tuple(names[tag] for tag in tags), starts.tolist()))
    assert score(tuple(decoded.tolist())) == pytest.approx(best, abs=1e-9)


@given(st.lists(st.sampled_from(range(5)), min_size=1, max_size=8))
def test_possible_sequences_are_those_that_both_readings_agree_on(numbers: list[int]) -> None:
    tags = [NAMES[number] for number in numbers]
    starts = np.zeros(len(tags), np.bool_)
    starts[0] = True
    allowed = not TagConstraints.of(NAMES)._impossible(np.array(numbers), starts).any()
    assert allowed == (entity_spans(tags) == entity_spans(tags, strict=True))
    if allowed:
        assert entities(tags) == entity_spans(tags)


@given(st.lists(sentences(), min_size=1, max_size=6))
def test_several_texts_are_decoded_as_each_alone(texts: list[tuple[np.ndarray, np.ndarray]]) -> None:
    constraints = TagConstraints.of(NAMES)
    alone = [constraints.decode(probabilities, starts) for probabilities, starts in texts]
    together = constraints.decode(*(np.concatenate(values) for values in zip(*texts, strict=True)))
    assert together.tolist() == np.concatenate(alone).tolist()


def test_an_entity_type_without_b_cannot_be_opened() -> None:
    constraints = TagConstraints.of(("O", "I-LOC"))
    decoded = constraints.decode(np.array([[0.1, 0.9], [0.2, 0.8]], np.float32), np.array([True, False]))
    assert decoded.tolist() == [0, 0]
