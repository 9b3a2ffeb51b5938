"""The words that a classifier relies on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.look.dataset.word_importance import word_importance


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
