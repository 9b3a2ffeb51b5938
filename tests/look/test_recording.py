"""Layers are recorded as far as they are needed."""

from __future__ import annotations

import pytest
import torch
from tests.look.models import KINDS, TEXT, look_input

from regard.look import reading
from regard.look.heads import weight_map
from regard.look.reading import read_text
from regard.look.recording import LazyLayers


@pytest.mark.parametrize("kind", ["encoder", "albert", "local", "gpt2", "llama"])
def test_long_texts_run_as_far_as_needed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SHORT", 2)
    model = KINDS[kind]()
    read = read_text(model, look_input())
    (part,) = read.parts
    assert isinstance(part.layers, LazyLayers)
    assert read.nbytes == 0
    expected = model.attention(TEXT)
    for layer in (1, part.depth):
        assert torch.allclose(weight_map(part, layer).values_HTS, expected[layer], atol=1e-6)
        assert len(part.layers.recorded) == layer
    assert read.nbytes == sum(layer.nbytes for layer in part.layers)
    assert len(part.layers[:]) == part.depth


def test_switched_off_heads_stay_off(monkeypatch: pytest.MonkeyPatch) -> None:
    model = KINDS["encoder"]()
    whole = read_text(model, look_input(off=((1, 0),)))
    monkeypatch.setattr(reading, "SHORT", 2)
    lazy = read_text(model, look_input(off=((1, 0),)))
    one, two = (weight_map(each.parts[0], 2).values_HTS for each in (whole, lazy))
    assert torch.allclose(one, two, atol=1e-6)
    assert not torch.allclose(one, model.attention(TEXT)[2], atol=1e-4)
