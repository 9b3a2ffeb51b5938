"""Figures for papers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.look.models import KINDS, TEXT, look_input

from regard.errors import InputError
from regard.look.figures import draw_heads
from regard.look.reading import read_text


@pytest.mark.parametrize(("kind", "name"), [("encoder", "a.png"), ("gpt2", "a.svg"), ("gru", "a.pdf")])
def test_figures_are_written(kind: str, name: str, tmp_path: Path) -> None:
    part = read_text(KINDS[kind](), look_input("film $x$ 東京")).parts[0]
    draw_heads(part, 1, None, tmp_path / name)
    start = {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}[name]
    assert (tmp_path / name).read_bytes().startswith(start)


def test_texts_that_are_too_long(tmp_path: Path) -> None:
    part = read_text(KINDS["encoder"](), look_input(" ".join([TEXT] * 20))).parts[0]
    with pytest.raises(InputError, match="up to 64 tokens"):
        draw_heads(part, 1, [0], tmp_path / "a.png")
