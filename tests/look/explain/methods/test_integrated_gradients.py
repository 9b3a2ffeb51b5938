"""Integrated gradients equal those of Captum and add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.look.explain.methods.captum_reference import inputs, logits_of
from tests.look.tiny_models import TEXT

attr = pytest.importorskip("captum.attr", reason="needs captum: pip install captum")


def test_scores_equal_captum(ours: Any, theirs: Any) -> None:
    ids, masked, number = inputs(ours)
    reference = attr.LayerIntegratedGradients(logits_of(theirs), theirs.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, masked, target=number, n_steps=20, method="riemann_middle")
    explanation = ours.explain(TEXT, method="integrated_gradients", steps=20)
    np.testing.assert_allclose(explanation.token_scores, expected[0].sum(-1).detach().numpy(), atol=1e-5)
