"""Targets of every task: which value is explained, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.look.tiny_models import CONTEXT, TEXT, model

from regard.look.explain.explain import make_scorer
from regard.ragged import Ragged

# Classes and numbers: what is explained is what the model answers.


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


# Answers to questions.


def test_the_value_of_an_answer_is_the_sum_of_its_logits() -> None:
    loaded = model("tiny-bert", {"span": 2})
    explanation = loaded.explain("who was warm", CONTEXT, target="the river", method="random")
    encoding = loaded.require_tokenizer().encode("who was warm", CONTEXT)
    with torch.no_grad():
        logits = loaded.network(Ragged.of([encoding.ids], segments=[encoding.segments])).logits
    first, last = explanation.target.positions
    assert [encoding.offsets[i] for i in (first, last)] == [(12, 15), (16, 21)]
    assert explanation.value == pytest.approx(float(logits[first, 0] + logits[last, 1]), abs=1e-5)
    chance = logits.softmax(0)[first, 0] * logits.softmax(0)[last, 1]
    assert explanation.probability == pytest.approx(float(chance), abs=1e-6)
    (answer,) = loaded.predict([("who was warm", CONTEXT)])
    assert loaded.explain("who was warm", CONTEXT, method="random").target.label == answer.answer


def test_an_answer_in_a_long_context_is_explained_in_its_window() -> None:
    loaded = model("tiny-bert", {"span": 2}, max_tokens=24)
    context = " ".join([CONTEXT] * 5) + " with money"
    explanation = loaded.explain("who", context, target="money", method="occlusion")
    assert explanation.windows == 1
    assert explanation.note is not None
    assert "windows" in explanation.note
    assert explanation.target.label == "money"
    outside = [word.score for word in explanation.words if word.sequence == 1 and word.end < 60]
    assert not np.any(outside)


# Tags of words.


@torch.no_grad()
def test_the_value_of_a_tag_is_the_logit_at_the_first_token_of_its_word() -> None:
    loaded = model("tiny-bert", {"token": 3})
    explanation = loaded.explain(TEXT, target="windows=B-PER", method="random")
    encoding = loaded.require_tokenizer().encode(TEXT)
    position = next(i for i, (start, _) in enumerate(encoding.offsets) if start == TEXT.index("windows"))
    logits = loaded.network(Ragged.of([encoding.ids])).logits[position]
    assert explanation.target.positions == (position,)
    assert explanation.value == pytest.approx(float(logits[1]), abs=1e-5)
    assert explanation.probability == pytest.approx(float(logits.softmax(-1)[1]), abs=1e-6)
    several = loaded.explain(TEXT, target="the soup=PER", method="random")
    assert len(several.target.positions) == 2


# Similarities and lengths of vectors.


def test_the_similarity_is_that_of_the_vectors() -> None:
    loaded = model("tiny-bert", {})
    explanation = loaded.explain(TEXT, CONTEXT, method="decomposition")
    first, second = loaded.embed([TEXT, CONTEXT], normalize=True)
    assert explanation.value == pytest.approx(float(first @ second), abs=1e-5)
    length = loaded.explain(TEXT, method="decomposition")
    assert length.value == pytest.approx(float(np.linalg.norm(loaded.embed([TEXT])[0])), abs=1e-4)


# Next, masked and translated words.


def test_the_next_word_is_the_one_that_is_generated() -> None:
    loaded = model("tiny-gpt2")
    explanation = loaded.explain(TEXT, method="random")
    tokenizer = loaded.require_tokenizer()
    with torch.no_grad():
        chances = loaded.network(Ragged.of([tokenizer.encode(TEXT).ids])).logits[-1].softmax(-1)
    number = int(chances[: tokenizer.size].argmax())
    assert tokenizer.decode([number], special=True).strip() == explanation.target.label
    assert explanation.probability == pytest.approx(float(chances[number]), abs=1e-5)


def test_a_long_text_before_the_next_word_is_cut_at_its_start() -> None:
    loaded = model("tiny-gpt2", max_tokens=8)
    explanation = loaded.explain(" ".join([TEXT] * 4), method="occlusion")
    assert len(explanation.tokens) == 8
    assert explanation.note is not None
    assert "reads the last 8" in explanation.note


def test_a_masked_word_is_the_one_that_is_filled_in() -> None:
    loaded = model("tiny-bert", {"masked": 0})
    text = "the [MASK] was warm"
    explanation = loaded.explain(text, method="random")
    best = loaded.fill(text, top=1)[0][0]
    assert (explanation.target.label, explanation.probability) == (best.word, pytest.approx(best.score, abs=1e-6))


@pytest.mark.parametrize("name", ["tiny-transformer", "tiny-t5", "tiny-lstm-feeding"])
def test_a_translated_word_has_the_probability_of_its_decoding(name: str) -> None:
    loaded = model(name)
    (translation,) = loaded.translate([TEXT])
    explanation = loaded.explain(TEXT, target="1", method="occlusion")
    assert explanation.target.description.endswith(f'of "{translation}"')
    assert explanation.pair is not None
    assert translation.startswith(explanation.pair)
    first = loaded.explain(TEXT, method="random")
    scorer: Any = make_scorer(loaded, TEXT)
    row = scorer.text.sequences[0]
    with torch.no_grad():
        logits = loaded.network(Ragged.of([row.ids]), Ragged.of([row.decoder_ids])).logits
    numbers = scorer.target.numbers
    places = scorer.target.positions
    chances = [float(logits.softmax(-1)[i, number]) for i, number in zip(places, numbers, strict=True)]
    assert first.probability == pytest.approx(np.mean(chances), abs=1e-5)
