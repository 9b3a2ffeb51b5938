"""Guessing ahead changes nothing but the number of passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.generate.lookup import guess_tokens


@pytest.mark.parametrize("settings", [{}, {"min_tokens": 12}, {"repetition_penalty": 1.2}, {"no_repeat": 3}])
def test_what_comes_out_is_greedy(both, prompts, settings):
    _, model = both
    prompts = [*prompts, [5, 6, 7, 8, 5, 6, 7, 8, 5, 6]]
    expected = model.continuations(prompts, max_tokens=25, **settings)
    result = model.continuations(prompts, max_tokens=25, lookup=5, **settings)
    assert [rows[0].ids for rows in result] == [rows[0].ids for rows in expected]
    assert [rows[0].finish_reason for rows in result] == [rows[0].finish_reason for rows in expected]
    for ours, theirs in zip(result, expected, strict=True):
        assert ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=1e-4)


def test_repetition_takes_fewer_passes(decoder, monkeypatch):
    _, model = decoder
    passes = []
    states = model.network.hidden_states
    monkeypatch.setattr(model.network, "hidden_states", lambda batch, cache: passes.append(1) or states(batch, cache))
    prompt = [[5, 6] * 8]
    plain = model.generate_ids(prompt, max_tokens=30, min_tokens=30)
    many = len(passes)
    assert model.generate_ids(prompt, max_tokens=30, min_tokens=30, lookup=8) == plain
    assert len(passes) - many < many


def test_a_guess_is_what_followed_last_time():
    assert guess_tokens([1, 2, 3, 9, 1, 2, 3], 2) == [9, 1]
    assert guess_tokens([1, 2, 3, 1, 2, 4, 1, 2], 3) == [4, 1, 2]
    assert guess_tokens([7, 7, 7], 4) == [7]
    assert guess_tokens([1, 2, 3], 4) == guess_tokens([1], 4) == guess_tokens([1, 1], 0) == []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 6))
def test_a_guess_stands_in_the_sequence(ids, limit):
    result = guess_tokens(ids, limit)
    assert len(result) <= limit
    assert not result or any(ids[i : i + len(result)] == result for i in range(1, len(ids)))
