"""Answers to questions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.look.tiny_models import CONTEXT, model

from regard.ragged import Ragged


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
