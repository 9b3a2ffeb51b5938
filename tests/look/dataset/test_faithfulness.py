"""Faithfulness over a data set."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.look.tiny_models import model

from regard.look.dataset.faithfulness import faithfulness, greedy_order, measure
from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.order_scores import order_scores


def test_methods_are_measured_against_random_order(loaded: Any, reviews_csv: Path) -> None:
    seen: list[Any] = []
    result = faithfulness(loaded, reviews_csv, ["occlusion", "attention"], max_rows=6, progress=seen.append)
    assert {one.method for one in result.methods} == {"occlusion", "attention", "random"}
    assert result.texts == len(seen) == 6
    values = [one.comprehensiveness.value for one in result.methods]
    assert values == sorted(values, reverse=True)
    for one in result.methods:
        assert one.comprehensiveness.low <= one.comprehensiveness.value <= one.comprehensiveness.high
        assert one.normalized is None or 0 <= one.normalized.value <= 1
    json.dumps(result.json())
    assert result["random"].method == "random"


def test_limits_are_reached_by_no_other_order_of_a_short_text() -> None:
    scorer: Any = make_scorer(model("tiny-modernbert", {"sequence": 2}), "the soup was warm")
    orders = [np.array(order) for order in itertools.permutations(range(4))]
    values = [score.comprehensiveness for score in order_scores(scorer, orders)]
    highest, lowest = order_scores(scorer, [greedy_order(scorer, sign=1), greedy_order(scorer, sign=-1)])
    assert highest.comprehensiveness >= np.quantile(values, 0.8)
    assert lowest.comprehensiveness <= np.quantile(values, 0.2)
    measured = measure(scorer, ["occlusion"], MethodOptions(), limits=True)
    assert 0 <= (measured.normalized("occlusion") or 0) <= 1
    assert measure(scorer, ["occlusion"], MethodOptions(), limits=False).normalized("occlusion") is None
