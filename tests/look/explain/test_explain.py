"""Explanations of every kind of model."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.look.tiny_models import CONTEXT, KINDS, TEXT, model, text_for

import regard
from regard.errors import InputError
from regard.look.explain.explain import default_method
from regard.look.explain.methods import METHODS, methods_for

# Explanations of every kind of model, by every method that fits.


TRANSFORMERS = [kind for kind in KINDS if not kind.startswith(("gru", "lstm", "marian"))]  # marian translates nothing


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "marian"])
def test_every_method_that_fits_explains_every_kind_of_model(kind: str) -> None:
    name, heads, pair = KINDS[kind]
    loaded = model(name, heads)
    for method in methods_for(loaded.network):
        explanation = loaded.explain(text_for(kind), pair, method=method, steps=4)
        assert len(explanation.token_scores) == len(explanation.tokens) == len(explanation.offsets)
        assert np.isfinite(explanation.token_scores).all()
        assert explanation.words
        json.dumps(explanation.json())
    assert default_method(loaded) in methods_for(loaded.network)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_the_contributions_of_a_decomposition_add_up_to_the_value(kind: str) -> None:
    name, heads, pair = KINDS[kind]
    explanation = model(name, heads).explain(text_for(kind), pair, method="decomposition")
    assert explanation.bias is not None
    assert sum(explanation.token_scores) + explanation.bias == pytest.approx(explanation.value, abs=1e-3)


@pytest.mark.parametrize("kind", ["bert", "tagger", "reader", "gpt2", "llama", "t5", "gru", "similarity"])
def test_integrated_gradients_are_complete(kind: str) -> None:
    name, heads, pair = KINDS[kind]
    explanation = model(name, heads).explain(text_for(kind), pair, method="integrated_gradients")
    assert explanation.baseline_value is not None
    difference = explanation.value - explanation.baseline_value
    assert sum(explanation.token_scores) == pytest.approx(difference, rel=0.01, abs=1e-5)


def test_a_long_text_is_explained_in_windows_whose_mean_is_the_answer() -> None:
    loaded = model("tiny-bert", {"sequence": 2}, max_tokens=16)
    text = " ".join([TEXT] * 6)
    explanation = loaded.explain(text, method="decomposition")
    (answer,) = loaded.predict([text])
    assert explanation.windows == answer.windows > 1
    assert explanation.probability == pytest.approx(answer.score, abs=1e-6)
    assert sum(explanation.token_scores) + explanation.bias == pytest.approx(explanation.value, abs=1e-3)
    assert len(explanation.words) == len(text.split())


def test_words_are_character_spans_and_the_sums_of_their_tokens() -> None:
    explanation = model("tiny-bert", {"sequence": 2}).explain("Windows, the soup!", method="decomposition")
    assert [word.text for word in explanation.words] == ["Windows", ",", "the", "soup", "!"]
    for word in explanation.words:
        assert word.score == pytest.approx(sum(explanation.token_scores[token] for token in word.tokens))
    assert len(explanation.words[0].tokens) > 1


def test_the_target_can_be_chosen() -> None:
    classifier = model("tiny-bert", {"sequence": 3})
    values = [classifier.explain(TEXT, target=f"c{number}", method="occlusion").value for number in range(3)]
    predicted = classifier.explain(TEXT, method="occlusion")
    assert predicted.value == max(values)
    tagger = model("tiny-bert", {"token": 3}).explain(TEXT, target="soup=PER")
    assert tagger.target.description == 'the entity "PER" of "soup"'
    reader = model("tiny-bert", {"span": 2}).explain("who", "the cook was good", target="cook")
    assert reader.target.label == "cook"
    following = model("tiny-gpt2").explain(TEXT, target="soup")
    assert following.target.label == "soup"
    masked = model("tiny-bert", {"masked": 0}).explain("the [MASK] was warm", target="soup")
    assert masked.target.label == "soup"


def test_faithfulness_of_one_text_is_measured_on_request() -> None:
    explanation = model("tiny-bert", {"sequence": 2}).explain(TEXT, faithfulness=True)
    assert explanation.faithfulness is not None
    assert explanation.note is None


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("bert", {"method": "shap"}, '"shap" is not known'),
        ("gru", {"method": "decomposition"}, "Methods that can: occlusion"),
        ("gru", {"method": "attention-rollout"}, "Methods that can: occlusion"),
        ("bert", {"target": "c9"}, '"c9" is not a class'),
        ("bert", {"steps": 0}, "expected 1 to 4096"),
        ("bert", {"text": " "}, "the text is empty"),
        ("gpt2", {"pair": "more"}, "Leave it out"),
        ("reader", {"pair": None}, "as pair, the context"),
        ("reader", {"target": "nowhere"}, "is not in the context"),
        ("tagger", {"target": "nowhere"}, "is not in the text. Give words of the text, such as "),
        ("tagger", {"target": "PER"}, "is a tag. Say of which words: target=.the=PER"),
        ("tagger", {"target": "soup=XYZ"}, '"XYZ" is not a tag'),
        ("masked", {"text": "the soup"}, "there is no"),
        ("masked", {"target": "windows"}, "is not one token"),
        ("vectors", {"target": "soup"}, "no classes"),
        ("t5", {"target": "nowhere"}, "is not a word of the translation"),
    ],
)
def test_errors_say_what_is_wrong_and_what_can_be_done(kind: str, options: dict[str, str], message: str) -> None:
    name, heads, pair = KINDS[kind]
    arguments = {"text": text_for(kind), "pair": pair, **options}
    with pytest.raises(InputError, match=message):
        model(name, heads).explain(**arguments)


def test_methods_are_listed_with_the_default_first() -> None:
    assert next(iter(METHODS)) == default_method(model("tiny-bert", {"sequence": 2}))


def test_a_notebook_shows_every_word_in_color_and_no_markup() -> None:
    text = "the <b> soup , the film , was bad"
    explanation = model("tiny-bert", {"sequence": 2}).explain(text, CONTEXT, method="occlusion")
    page = explanation._repr_html_()
    assert page.count("<span") == len(explanation.words)
    assert re.sub(r"<[^>]*>", "", page).endswith(html.escape(text) + CONTEXT)
    assert "<b>" not in page
    strongest = max(explanation.words, key=lambda word: abs(word.score))
    assert f'title="{strongest.score:+.4f}">{html.escape(strongest.text)}</span>' in page


# Baselines are explained by removing words from the text.


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
