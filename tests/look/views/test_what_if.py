"""Heads switched off, and words that change the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.look.models import KINDS, TEXT, look_input, session

import regard
from regard.errors import InputError
from regard.look.heads import weight_map
from regard.look.reading import read_text
from regard.look.views import attention
from regard.look.views.fields import Fields
from regard.look.views.what_if import counterfactuals


def test_switched_off_heads_change_answers_and_later_maps() -> None:
    model = KINDS["classifier"]()
    look = session(model)
    whole = attention.answer(look, Fields({"text": TEXT}))
    off = attention.answer(look, Fields({"text": TEXT, "off": [[1, 0], [1, 1]]}))
    with model.ablate([(1, 0), (1, 1)]):
        expected = attention.answer(look, Fields({"text": TEXT}))
    assert off == expected
    assert off != whole
    before, after = (read_text(model, look_input(TEXT, off=heads)).parts[0] for heads in ((), ((1, 0),)))
    assert torch.equal(weight_map(before, 1), weight_map(after, 1))
    assert not torch.equal(weight_map(before, 2), weight_map(after, 2))


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_parts_of_a_translator(part: str) -> None:
    look = session(KINDS["translator"]())
    fields = {"text": TEXT, "off": [[1, 0]], "off_part": part}
    assert attention.answer(look, Fields(fields))["kind"] == "translation"
    assert attention.read(look, Fields(fields))["parts"]


def test_heads_that_do_not_exist() -> None:
    with pytest.raises(InputError, match="head 9 does not exist"):
        attention.answer(session(KINDS["classifier"]()), Fields({"text": TEXT, "off": [[1, 9]]}))
    with pytest.raises(InputError, match="no heads"):
        attention.answer(session(KINDS["gru"]()), Fields({"text": TEXT, "off": [[1, 0]]}))


def test_counterfactuals(trained: Path) -> None:
    look = session(regard.load(trained, device="cpu"))
    answer = counterfactuals(look, Fields({"text": "a lovely film"}))
    assert answer["label"] in ("good", "bad")
    assert answer["tried"] > 0
