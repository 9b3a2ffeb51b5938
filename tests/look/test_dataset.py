"""Words, heads and faithfulness over a data set, with a classifier that was trained once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.look.tiny_models import TEXT, model

import regard
from regard.errors import InputError
from regard.look.dataset.faithfulness import faithfulness, measure
from regard.look.dataset.head_importance import head_importance
from regard.look.dataset.items import DataItem, read_items, sample_rows
from regard.look.dataset.word_importance import word_importance
from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.method import MethodOptions

# A classifier that was trained once.


@pytest.fixture(scope="module")
def loaded(trained: Path) -> Any:
    return regard.load(trained)


# Texts of a data set.


def test_texts_are_read_from_lists_and_files(loaded: Any, reviews_csv: Path) -> None:
    assert read_items(loaded, ["one text", "two"]) == [DataItem("one text"), DataItem("two")]
    items = read_items(loaded, reviews_csv, max_rows=7)
    assert len(items) == 7
    assert {item.label for item in items} <= {"good", "bad"}
    assert sample_rows(range(10), 5) == sorted(sample_rows(range(10), 5))
    assert sample_rows([3, 1], 5) == [3, 1]


def test_errors_say_what_is_missing(loaded: Any) -> None:
    with pytest.raises(InputError, match="two words"):
        faithfulness(loaded, ["film"], ["occlusion"])
    with pytest.raises(InputError, match="at least 1"):
        read_items(loaded, ["a"], max_rows=0)
    with pytest.raises(InputError, match="no classes"):
        word_importance(model("tiny-bert", {"token": 3}), [TEXT])


# Faithfulness over a data set.


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


# What heads are worth.


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


# The words that a classifier relies on.


def test_important_words_are_those_that_the_model_learned(loaded: Any, reviews_csv: Path) -> None:
    result = word_importance(loaded, reviews_csv, max_rows=40, top=6)
    assert [one.label for one in result.classes] == ["bad", "good"]
    words = {one.label: {word.word for word in one.words} for one in result.classes}
    assert words["good"] & {"lovely", "great", "warm", "good", "best", "fun"}
    assert words["bad"] & {"dull", "poor", "cold", "bad", "worst", "work"}
    for one in result.classes:
        scores = [word.score for word in one.words]
        assert scores == sorted(scores, reverse=True)
        assert one.accuracy is not None
        assert one.accuracy_without is not None
        example = one.words[0].examples[0]
        assert one.words[0].word in example.text
        assert "…" in example.without
    json.dumps(result.json())
