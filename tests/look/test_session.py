"""Models of the page, and the texts they have read."""

from __future__ import annotations

import pytest
from tests.look.models import KINDS, look_input, session

from regard.errors import InputError
from regard.look import session as module
from regard.look.session import LookSession, describe, input_fields
from regard.predict import Model


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    look = session(KINDS["encoder"]())
    first = look.read(0, look_input())
    assert look.read(0, look_input()) is first
    monkeypatch.setattr(module, "MAX_BYTES", 1)
    look.read(0, look_input("another text"))
    assert look.read(0, look_input()) is not first


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        (None, ("text", "second text (optional)")),
        ("embed", ("text", "second text (optional)")),
        ("classify", ("text",)),
        ("tag", ("text",)),
        ("pair", ("first text", "second text")),
        ("answer", ("question", "context")),
    ],
)
def test_texts_that_a_model_reads(monkeypatch: pytest.MonkeyPatch, task: str | None, fields: tuple[str, ...]) -> None:
    monkeypatch.setattr(Model, "task", task)
    assert input_fields(KINDS["encoder"]()) == fields


def test_models_by_number() -> None:
    look = session(KINDS["encoder"]())
    with pytest.raises(InputError, match="model 1 does not exist"):
        look.model(1)
    with pytest.raises(InputError, match="no model"):
        LookSession([])


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_is_described(kind: str) -> None:
    words = describe("name", KINDS[kind]())
    assert words["network"]
    assert words["inputs"]
    if kind == "plain gru":
        assert words["parts"] == []
        assert "without attention" in words["network"]
