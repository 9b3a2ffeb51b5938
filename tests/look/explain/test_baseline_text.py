"""Baselines are explained by removing words from the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import InputError


@pytest.fixture(scope="module", params=["ngram"])
def baseline(request: pytest.FixtureRequest, reviews_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("baselines") / request.param
    regard.train(reviews_csv, out=folder, preset=request.param)
    return regard.load(folder)


def test_a_word_is_worth_what_is_lost_without_it(baseline: Any) -> None:
    text = "a lovely film"
    explanation = baseline.explain(text, faithfulness=True)
    assert explanation.method == "occlusion"
    (whole,) = baseline.predict([text])
    assert explanation.target.label == whole.label
    assert explanation.probability == pytest.approx(whole.score, abs=1e-5)
    best = explanation.top_words(1)[0]
    assert best.text == "lovely"
    with pytest.raises(InputError, match="Methods that can: occlusion, random"):
        baseline.explain(text, method="integrated_gradients")
