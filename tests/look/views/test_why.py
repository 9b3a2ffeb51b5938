"""Methods and explanations as JSON."""

from __future__ import annotations

import pytest
from tests.look.models import KINDS, TEXT, session

from regard.look.views.attention import answer
from regard.look.views.fields import Fields
from regard.look.views.why import MAX_SEARCHED, explain, limits, methods


@pytest.mark.parametrize("kind", ["classifier", "gpt2", "gru"])
def test_explanations_are_those_of_the_model(kind: str) -> None:
    model = KINDS[kind]()
    look = session(model)
    listed = methods(look, Fields({}))
    assert "not an explanation" in listed["warning"]
    assert any(method["why_not"] for method in listed["methods"]) is (kind == "gru")
    values = explain(look, Fields({"text": TEXT, "method": "occlusion"}))
    expected = model.explain(TEXT, method="occlusion")
    assert [word["score"] for word in values["words"]] == pytest.approx([word.score for word in expected.words])
    assert values["faithfulness"]["comprehensiveness"] is not None


def test_limits_of_short_texts() -> None:
    look = session(KINDS["classifier"]())
    worst, best = limits(look, Fields({"text": TEXT}))["limits"]
    scores = explain(look, Fields({"text": TEXT, "method": "occlusion"}))["faithfulness"]
    assert scores["normalized"] is None
    assert worst <= scores["random_comprehensiveness"] <= best
    values = limits(look, Fields({"text": " ".join([TEXT] * 12)}))
    assert values["limits"] is None
    assert values["words"] == 60 > MAX_SEARCHED == values["max_words"]


def test_another_class_is_explained() -> None:
    look = session(KINDS["classifier"]())
    first = explain(look, Fields({"text": TEXT, "method": "occlusion"}))
    names = [name for name, _ in answer(look, Fields({"text": TEXT}))["bars"]]
    other = next(name for name in names if name != first["target"]["label"])
    assert explain(look, Fields({"text": TEXT, "method": "occlusion", "aim": other}))["target"]["label"] == other
