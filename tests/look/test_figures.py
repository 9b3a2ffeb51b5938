"""Figures for papers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.look.models import KINDS, TEXT, look_input, transformer

from regard.errors import InputError
from regard.look.figures import default_layer, draw_heads
from regard.look.reading import read_text
from regard.model.mean_layer import append_mean_layer


@pytest.mark.parametrize(("kind", "name"), [("encoder", "a.png"), ("gpt2", "a.svg"), ("gru", "a.pdf")])
def test_figures_are_written(kind: str, name: str, tmp_path: Path) -> None:
    part = read_text(KINDS[kind](), look_input("film $x$ 東京")).parts[0]
    draw_heads(part, 1, None, tmp_path / name)
    start = {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}[name]
    assert (tmp_path / name).read_bytes().startswith(start)


def test_the_default_layer_is_not_one_that_averages() -> None:
    model = transformer("tiny-bert", heads={"sequence": 2})
    part = read_text(model, look_input()).parts[0]
    assert default_layer(model, part) == part.depth == 2
    append_mean_layer(model.network)
    part = read_text(model, look_input()).parts[0]
    assert part.depth == 3
    assert default_layer(model, part) == 2


def test_texts_that_are_too_long(tmp_path: Path) -> None:
    part = read_text(KINDS["encoder"](), look_input(" ".join([TEXT] * 20))).parts[0]
    with pytest.raises(InputError, match="up to 64 tokens"):
        draw_heads(part, 1, [0], tmp_path / "a.png")
