"""Language models of both directions: neither sees what it predicts, and a task mixes their layers."""

import pytest
import torch
from tests.model.recurrent.build import bidirectional

from regard.config import RecurrentConfig
from regard.errors import InputError
from regard.model.recurrent.bidirectional_lm import ScalarMix, reversed_index
from regard.ragged import Ragged


def test_no_direction_sees_its_target(sides):
    """A token changes the states from the left at it and after it, those from the right at it and before it."""
    one, other = (sides.encoder.all_layers(Ragged.of([[1, 2, token, 4, 5]])) for token in (3, 9))
    sides = (slice(0, 8), slice(8, 16))
    moved = [[(one[2, place, half] != other[2, place, half]).any().item() for place in range(5)] for half in sides]
    assert moved == [[False, False, True, True, True], [True, True, True, False, False]]


def test_each_sequence_is_mirrored(tokens):
    batch = Ragged.of([[1, 2, 3], [], [4], [5, 6]])
    assert batch.ids[reversed_index(batch)].tolist() == [3, 2, 1, 4, 6, 5]


def test_a_task_learns_which_layer_it_needs(sides, tokens):
    """The target is the first layer from both sides: its weight grows to almost one, and the scale stays near one."""
    batch = tokens((9, 6, 7), vocabulary=20)
    states, mix = sides.encoder.all_layers(batch).detach(), ScalarMix(3).double()
    assert torch.allclose(mix(states), states.mean(0))
    optimizer = torch.optim.Adam(mix.parameters(), lr=0.2)
    for _ in range(100):
        ((mix(states) - states[1]) ** 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    shares = mix.scores.softmax(0)
    assert shares.argmax() == 1
    assert shares[1] > 0.8
    assert mix.scale.item() == pytest.approx(1.0, abs=0.25)


def test_embeddings_as_wide_as_states():
    with pytest.raises(InputError, match="as wide as"):
        RecurrentConfig(20, 16, 6, kind="encoder")


def test_layers_can_be_chosen(sides, tokens):
    batch = tokens((4, 2), vocabulary=20)
    every = sides.encoder.all_layers(batch)
    for layer in range(3):
        assert torch.equal(sides.reader(batch, layers=layer), every[layer])
    assert torch.equal(sides(batch).hidden, every[2])
    assert torch.equal(sides.mixture(batch), every.mean(0))


def test_labels_stand_on_the_mix(tokens):
    batch = tokens((4, 0, 2), vocabulary=20)
    token, sequence = (bidirectional(20, 8, (head,)).eval() for head in ("token", "sequence"))
    assert token(batch).logits.shape == (6, 3)
    assert sequence(batch).logits.shape == (3, 3)
    with torch.no_grad():
        token.heads["mix"].scores.copy_(torch.tensor([0.0, 50.0, 0.0]))
    assert torch.allclose(token(batch).hidden, token.encoder.all_layers(batch)[1])
    at = torch.tensor([1, 5])
    assert torch.allclose(token(batch, at=at).logits, token(batch).logits[at])
    with pytest.raises(InputError, match='has no head "masked"'):
        bidirectional(20, 8, ("masked",))
    with pytest.raises(InputError, match="reads one batch"):
        token(batch, batch)
