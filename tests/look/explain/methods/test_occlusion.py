"""Occlusion of words equals that of Captum."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.look.explain.methods.captum_reference import inputs, logits_of
from tests.look.tiny_models import TEXT

attr = pytest.importorskip("captum.attr", reason="needs captum: pip install captum")


def test_scores_equal_captum(ours: Any, theirs: Any) -> None:
    ids, masked, number = inputs(ours)
    explanation = ours.explain(TEXT, method="occlusion")
    groups = torch.zeros_like(ids)
    for number_of_word, one in enumerate(explanation.words, start=1):
        groups[0, list(one.tokens)] = number_of_word
    reference = attr.FeatureAblation(logits_of(theirs))
    expected = reference.attribute(ids, masked, target=number, feature_mask=groups)[0]
    for word in explanation.words:
        assert word.score == pytest.approx(float(expected[word.tokens[0]]), abs=1e-5)
    assert explanation.words[-1].score == pytest.approx(
        sum(explanation.token_scores[token] for token in explanation.words[-1].tokens)
    )
