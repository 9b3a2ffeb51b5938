"""Models made from presets."""

from __future__ import annotations

import pytest

import regard
from regard.errors import InputError


def test_a_preset_cannot_read_texts() -> None:
    model = regard.create("tiny-bert")
    for call in (lambda: model.embed(["a"]), lambda: model.attention("a")):
        with pytest.raises(InputError, match=r"no tokenizer \(a preset has none of its own\).* Give ids"):
            call()
