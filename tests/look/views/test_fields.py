"""Fields of a request: what was sent, what was expected."""

from __future__ import annotations

from typing import Any

import pytest

from regard.errors import InputError
from regard.look.reading import LookInput
from regard.look.views.fields import Fields


def test_fields() -> None:
    fields = Fields({"layer": 3, "heads": [0, 2], "rows": [1, 4], "text": "a", "pair": "", "off": [[1, 0]]})
    assert fields.number("layer") == 3
    assert fields.number("window", 0) == 0
    assert fields.numbers("heads") == [0, 2]
    assert fields.span("rows") == (1, 4)
    assert fields.span("columns") is None
    assert fields.pairs("off") == [(1, 0)]
    assert fields.input() == LookInput("a", off=((1, 0),))
    assert fields.texts("others") == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "  "}, "the text is empty"),
        ({"text": 3}, '"text" is 3, expected a text'),
        ({"text": "a", "window": "x"}, "\"window\" is 'x', expected a whole number"),
        ({"text": "a", "window": True}, "expected a whole number"),
        ({"text": "x" * 1_000_001}, "expected at most 1,000,000"),
    ],
)
def test_wrong_fields(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Fields(values).input()


def test_wrong_lists() -> None:
    with pytest.raises(InputError, match="a list of whole numbers"):
        Fields({"heads": ["a"]}).numbers("heads")
    with pytest.raises(InputError, match="a start and an end"):
        Fields({"rows": [1]}).span("rows")
    with pytest.raises(InputError, match="a list of \\[layer, head\\]"):
        Fields({"off": 3}).pairs("off")
    with pytest.raises(InputError, match="a list of texts"):
        Fields({"texts": "a"}).texts("texts")
