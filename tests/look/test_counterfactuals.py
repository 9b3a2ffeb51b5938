"""Words that change the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.look.tiny_models import TEXT, model

import regard
from regard.errors import InputError


def test_replacements_that_change_the_answer_are_listed(trained: Path) -> None:
    loaded: Any = regard.load(trained)
    proposer = model("tiny-bert", {"masked": 0})
    text = "a lovely film"
    result = loaded.counterfactuals(text, masked_model=proposer, words=2, candidates=10)
    assert result.source == "masked language model"
    assert result.label == loaded.predict([text])[0].label
    for change in result.changes:
        (answer,) = loaded.predict([change.text])
        assert answer.label == change.label != result.label
        assert text[: change.start] + change.replacement + text[change.end :] == change.text


def test_without_a_masked_model_candidates_are_neighbors(trained: Path) -> None:
    result = regard.load(trained).counterfactuals("really bad work", words=1, candidates=30)
    assert result.source == "embedding neighbors"
    assert 0 < result.tried <= 30


def test_only_classifiers_have_counterfactual_words() -> None:
    with pytest.raises(InputError, match="one label"):
        model("tiny-bert", {"token": 3}).counterfactuals(TEXT)
    with pytest.raises(InputError, match="at least 1"):
        model("tiny-bert", {"sequence": 2}).counterfactuals(TEXT, words=0)
