"""Steps as JSON."""

from __future__ import annotations

import pytest
from tests.look.models import KINDS, TEXT, session

from regard.look.views import steps as views
from regard.look.views.fields import Fields


@pytest.mark.parametrize("kind", ["encoder", "local", "gpt2", "llama", "translator", "relative"])
def test_steps_of_every_kind(kind: str) -> None:
    look = session(KINDS[kind]())
    answer = views.steps(look, Fields({"text": TEXT, "layer": 1, "head": 1, "token": 1}))
    assert sum(answer["weights"]) == pytest.approx(1, abs=1e-3)
    assert len(answer["input"]) == look.model(0).config.width
    assert len(answer["key_vectors"]) == answer["all_keys"]
    positions = views.positions(look, Fields({}))
    assert positions["hands"][0]["rate"] == 1
    assert (positions["bias"] is not None) is (kind == "relative")


def test_long_texts_show_the_strongest_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_KEYS", 3)
    look = session(KINDS["encoder"]())
    answer = views.steps(look, Fields({"text": TEXT, "token": 1}))
    assert len(answer["keys"]) == 3
    assert answer["all_keys"] > 3
    assert answer["keys"] == sorted(answer["keys"])


def test_changes() -> None:
    look = session(KINDS["classifier"]())
    answer = views.change(look, Fields({"text": TEXT, "changed": "the cook burned a soup"}))
    assert answer["change"]["shape"] == [3, len(answer["pairs"])]
    assert [each["kind"] for each in answer["answers"]] == ["classes", "classes"]
