"""Faithfulness over a data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.look.tiny_models import model

from regard.look.dataset.faithfulness import faithfulness, measure
from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.method import MethodOptions


def test_methods_are_measured_against_random_order(loaded: Any, reviews_csv: Path) -> None:
    seen: list[Any] = []
    result = faithfulness(loaded, reviews_csv, ["occlusion", "attention"], max_rows=6, progress=seen.append)
    assert {one.method for one in result.methods} == {"occlusion", "attention", "random"}
    assert result.texts == 6
    assert [event.done for event in seen] == list(range(1, 6 * 3 + 1))
    values = [one.comprehensiveness.value for one in result.methods]
    assert values == sorted(values, reverse=True)
    for one in result.methods:
        assert one.comprehensiveness.low <= one.comprehensiveness.value <= one.comprehensiveness.high
        assert one.normalized is None or 0 <= one.normalized.value <= 1
    json.dumps(result.json())
    assert result["random"].method == "random"


def test_scores_are_between_the_limits() -> None:
    scorer: Any = make_scorer(model("tiny-modernbert", {"sequence": 2}), "the soup was warm")
    measured = measure(scorer, ["occlusion"], MethodOptions(), limits=True)
    assert 0 <= (measured.normalized("occlusion") or 0) <= 1
    assert measure(scorer, ["occlusion"], MethodOptions(), limits=False).normalized("occlusion") is None
