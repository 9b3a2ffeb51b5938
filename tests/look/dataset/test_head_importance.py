"""What heads are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.look.dataset.head_importance import head_importance


def test_the_worth_of_a_head_is_the_score_that_is_lost(loaded: Any, reviews_csv: Path) -> None:
    result = head_importance(loaded, reviews_csv, max_rows=None, heads=[(1, 0), (2, 1)])
    whole = regard.evaluate(loaded, reviews_csv).scores[result.metric].value
    assert result.score == pytest.approx(whole)
    with loaded.ablate([(2, 1)]):
        without = regard.evaluate(loaded, reviews_csv).scores[result.metric].value
    assert result.heads[1][1] == pytest.approx(whole - without)
    with loaded.ablate(layers=[1]):
        without = regard.evaluate(loaded, reviews_csv).scores[result.metric].value
    assert result.layers[0] == pytest.approx(whole - without)
    assert len(result.least(3)) == 3
