"""What a change of a word changes downstream."""

from __future__ import annotations

import pytest
import torch
from tests.look.models import KINDS, TEXT, look_input

from regard.errors import InputError
from regard.look.changes import hidden_change, hidden_states, matching_tokens
from regard.look.reading import read_text


def test_matching_tokens() -> None:
    assert matching_tokens([1, 2, 3], [1, 9, 3]) == [(0, 0), (1, 1), (2, 2)]
    assert matching_tokens([1, 2, 3], [1, 8, 9, 3]) == [(0, 0), (2, 3)]
    assert matching_tokens([1, 2], [1, 2]) == [(0, 0), (1, 1)]
    assert matching_tokens([1, 1, 1], [1, 1]) == [(0, 0), (1, 1)]


def test_a_changed_word_changes_the_words_after_it_in_a_decoder() -> None:
    change = hidden_change(KINDS["gpt2"](), look_input("warm y film and the"), look_input("warm q film and the"))
    moved = change.change_LT.amax(0) > 1e-5
    first = int(moved.nonzero()[0])
    assert first > 0
    assert bool(moved[first:].all())
    assert not bool(moved[:first].any())
    assert int((change.change_LT[0] > 1e-6).sum()) < int((change.change_LT[-1] > 1e-6).sum())


@pytest.mark.parametrize("kind", ["encoder", "albert", "llama", "translator"])
def test_states_are_those_of_the_network(kind: str) -> None:
    model = KINDS[kind]()
    reading = read_text(model, look_input())
    states = hidden_states(model, reading)
    assert len(states) == model.config.layers + 1
    assert hidden_change(model, look_input(), look_input()).change_LT.abs().max() == 0
    with torch.no_grad():
        last = model.network.reader(reading.batch, layers=model.config.layers - 1)
    assert torch.allclose(states[-2], last, atol=1e-5)


def test_recurrent_networks() -> None:
    with pytest.raises(InputError, match="only a Transformer"):
        hidden_change(KINDS["gru"](), look_input(), look_input(TEXT + " warm"))
