"""Attention weights of texts: as the reference computes them, and by window where a text is long."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.predict.models import LONG, TEXTS

from regard.errors import InputError
from regard.predict import Model


def test_attention_of_minilm_is_that_of_the_reference(minilm: Model, reference: Any, theirs: Any) -> None:
    with torch.no_grad():
        expected = reference(**theirs(TEXTS[2], return_tensors="pt"), output_attentions=True).attentions
    result = minilm.attention(TEXTS[2])
    assert sorted(result) == [1, 2, 3, 4, 5, 6]
    for layer, weights in result.items():
        assert torch.allclose(weights, expected[layer - 1][0], atol=1e-5)
    part = minilm.attention(TEXTS[2], layers=[-1], heads=[3])
    assert {layer: tuple(weights.shape) for layer, weights in part.items()} == {6: (1, *result[6].shape[1:])}
    assert torch.equal(part[6][0], result[6][3])


def test_attention_of_a_long_text_is_given_by_window(minilm: Model) -> None:
    result = minilm.attention(LONG, layers=[1, 6], heads=[3])
    assert len(result.windows) > 1
    covered: set[int] = set()
    for window in result.windows:
        size = len(window.tokens)
        assert size <= 512
        assert (window.tokens[0], window.tokens[-1]) == ("[CLS]", "[SEP]")
        assert len(window.offsets) == size
        assert {layer: tuple(weights.shape) for layer, weights in window.weights.items()} == {
            1: (1, size, size),
            6: (1, size, size),
        }
        assert torch.allclose(window.weights[6].sum(-1), torch.ones(1, size), atol=1e-5)
        covered |= {place for start, end in window.offsets for place in range(start, end)}
    assert covered >= {place for place, letter in enumerate(LONG) if not letter.isspace()}
    with pytest.raises(InputError, match=r"was split into \d+ windows. Their weights are in .windows"):
        result[6]


def test_a_window_of_attention_is_that_of_its_text_alone(minilm: Model) -> None:
    window = minilm.attention(LONG, layers=[6]).windows[0]
    end = window.offsets[-2][1]
    alone = minilm.attention(LONG[:end], layers=[6])
    assert alone.tokens == window.tokens
    assert alone.offsets == window.offsets
    assert torch.allclose(alone[6], window.weights[6], atol=1e-6)


def test_attention_of_a_pair_that_is_too_long_is_refused(minilm: Model) -> None:
    assert minilm.attention("a cat", pair="a dog", layers=[6])[6].shape[-1] == 7
    with pytest.raises(InputError, match=r"the two texts have \d+ tokens together; .* 512. Give shorter texts"):
        minilm.attention(LONG, pair="a dog")
