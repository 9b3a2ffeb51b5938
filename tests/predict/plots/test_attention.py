"""A picture of attention weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import regard
from regard.errors import InputError
from regard.predict.attention import AttentionWindow
from regard.predict.plots.attention import draw_attention
from regard.text.learn import train_tokenizer_from_texts


@pytest.fixture(scope="module")
def window() -> AttentionWindow:
    tokenizer = train_tokenizer_from_texts(["a small text about nothing"] * 9, kind="char")
    model = regard.create("tiny-bert", tokenizer=tokenizer)
    (window,) = model.attention("a small text").windows
    return window


def test_every_head_of_every_layer_is_plotted(window: AttentionWindow, tmp_path: Path) -> None:
    draw_attention(window, [0, 1, 2, 3], tmp_path / "attention.png")
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")


def test_too_many_heads_or_tokens_are_refused(window: AttentionWindow, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a picture shows up to 48 heads; 80 were asked for"):
        draw_attention(window, [0] * 40, tmp_path / "attention.png")
    long = replace(window, tokens=window.tokens * 9)
    with pytest.raises(InputError, match="a picture shows up to 64 tokens"):
        draw_attention(long, [0], tmp_path / "attention.png")
    assert not any(tmp_path.iterdir())
