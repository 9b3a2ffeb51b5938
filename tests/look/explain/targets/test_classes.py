"""Classes and numbers: what is explained is what the model answers."""

from __future__ import annotations

import pytest
from tests.look.tiny_models import CONTEXT, TEXT, model


def test_the_probability_of_a_class_is_that_of_the_answer() -> None:
    loaded = model("tiny-bert", {"sequence": 3})
    explanation = loaded.explain(TEXT, method="random")
    (answer,) = loaded.predict([TEXT])
    assert (explanation.target.label, explanation.probability) == (answer.label, pytest.approx(answer.score, abs=1e-6))
    pair = loaded.explain(TEXT, CONTEXT, method="random")
    (answer,) = loaded.predict([(TEXT, CONTEXT)])
    assert (pair.target.label, pair.probability) == (answer.label, pytest.approx(answer.score, abs=1e-6))


def test_a_regression_is_explained_as_a_number() -> None:
    loaded = model("tiny-bert", {"sequence": 1})
    explanation = loaded.explain(TEXT, method="decomposition")
    (answer,) = loaded.predict([TEXT])
    assert explanation.target.kind == "number"
    assert explanation.value == pytest.approx(answer.value, abs=1e-6)
    assert explanation.probability is None
    assert explanation.delta == pytest.approx(0, abs=1e-4)


def test_the_probability_of_several_labels_is_a_sigmoid() -> None:
    loaded = model("tiny-bert", {"sequence": 3})
    loaded.checkpoint.hf_config["problem_type"] = "multi_label_classification"
    explanation = loaded.explain(TEXT, target="c2", method="random")
    (answer,) = loaded.predict([TEXT])
    assert explanation.probability == pytest.approx(answer.scores["c2"], abs=1e-6)
