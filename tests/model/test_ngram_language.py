"""An n-gram model predicts what was counted, mixes shorter contexts, and generates token by token."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from regard.config import NgramConfig
from regard.errors import InputError
from regard.model.ngram_language import NgramNetwork, count_ngrams
from regard.ragged import Ragged

IDS = np.array([1, 2, 3, 1, 2, 4, 1, 2, 3, 0, 1, 5], np.int64)
VOCABULARY = 6


def network(order: int, discount: float = 0.0) -> NgramNetwork:
    tensors = count_ngrams(IDS, order, VOCABULARY)
    model = NgramNetwork(NgramConfig(VOCABULARY, order, len(tensors["counts"]), discount))
    model.decoder.load_state_dict(tensors)
    return model


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_without_a_discount_it_is_the_counts(order: int) -> None:
    model = network(order)
    for context in {tuple(IDS[start : start + order - 1]) for start in range(len(IDS) - order + 1)}:
        size = len(context)
        after = Counter(int(IDS[at + size]) for at in range(len(IDS) - size) if tuple(IDS[at : at + size]) == context)
        expected = [after[word] / after.total() for word in range(VOCABULARY)]
        assert model.decoder.probabilities(context) == pytest.approx(expected)


@pytest.mark.parametrize("context", [(), (1,), (1, 2), (2, 3), (5, 5), (0, 5)])
def test_with_a_discount_every_word_has_a_probability(context: tuple[int, ...]) -> None:
    probabilities = network(3, 0.75).decoder.probabilities(context)
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities.min() > 0


def test_unseen_contexts_use_shorter_ones() -> None:
    model = network(3, 0.5)
    assert model.decoder.probabilities((4, 2)) == pytest.approx(model.decoder.probabilities((2,)))


def test_logits_of_a_batch() -> None:
    model = network(3, 0.5)
    batch = Ragged.of([[1, 2, 3], [2], [3, 1, 2, 4]])
    output = model(batch)
    assert output.logits is not None
    expected = model.decoder.probabilities((1, 2))
    assert output.logits[6].exp().tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    assert output.logits[3].exp().tolist() == pytest.approx(model.decoder.probabilities((2,)).tolist(), abs=1e-6)
    at = torch.tensor([6, 0])
    assert torch.equal(model(batch, at=at).logits, output.logits[at])


def test_steps_equal_one_pass() -> None:
    model = network(4, 0.5)
    whole = model(Ragged.of([[1, 2, 3, 1], [4, 1, 2, 3]])).logits
    cache = model.new_cache(sequences=2)
    steps = [model.step(Ragged.of([[1, 2], [4, 1]]), cache), model.step(Ragged.of([[3], [2]]), cache)]
    assert whole is not None
    assert torch.equal(steps[0], whole[[1, 5]])
    assert torch.equal(steps[1], whole[[2, 6]])
    cache.select(torch.tensor([1, 1]))
    last = model.step(Ragged.of([[3], [3]]), cache)
    assert torch.equal(last, whole[[7, 7]])


def test_a_text_shorter_than_the_order() -> None:
    tensors = count_ngrams(np.array([1, 2], np.int64), 4, VOCABULARY)
    assert tensors["sizes"].tolist() == [2, 1, 0, 0]


def test_errors() -> None:
    with pytest.raises(InputError, match='no head "sequence"'):
        NgramNetwork(NgramConfig(VOCABULARY), {"sequence": 2})
    with pytest.raises(InputError, match="exact in fp32 only"):
        network(2).bfloat16()(Ragged.of([[1]]))
    with pytest.raises(InputError, match="expected at most 16,777,216"):
        NgramConfig(VOCABULARY, entries=1 << 25)
    with pytest.raises(InputError, match="discount must be at least 0"):
        NgramConfig(VOCABULARY, discount=1)
