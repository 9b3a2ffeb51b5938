"""Gradient times input equals that of Captum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.look.explain.methods.captum_reference import inputs, logits_of
from tests.look.tiny_models import TEXT

attr = pytest.importorskip("captum.attr", reason="needs captum: pip install captum")


def test_scores_equal_captum(ours: Any, theirs: Any) -> None:
    ids, _, number = inputs(ours)
    reference = attr.LayerGradientXActivation(logits_of(theirs), theirs.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, target=number)[0].sum(-1).detach().numpy()
    explanation = ours.explain(TEXT, method="gradient_x_input")
    np.testing.assert_allclose(explanation.token_scores, expected, atol=1e-5)
