"""Integrated gradients equal those of Captum and add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.look.explain.methods.captum_reference import inputs, logits_of
from tests.look.tiny_models import TEXT

from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.integrated_gradients import METHOD, dense, midpoints
from regard.look.explain.methods.method import MethodOptions

attr = pytest.importorskip("captum.attr", reason="needs captum: pip install captum")


def test_scores_equal_captum(ours: Any, theirs: Any) -> None:
    ids, masked, number = inputs(ours)
    reference = attr.LayerIntegratedGradients(logits_of(theirs), theirs.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, masked, target=number, n_steps=20, method="riemann_middle")
    explanation = ours.explain(TEXT, method="integrated_gradients", steps=20)
    np.testing.assert_allclose(explanation.token_scores, expected[0].sum(-1).detach().numpy(), atol=1e-5)


def test_dense_points_integrate_smooth_functions() -> None:
    parts = midpoints(108)
    points, density = dense(parts)
    assert (np.diff(points) > 0).all()
    for power in (0, 1, 3):
        assert np.mean(points**power / density) == pytest.approx(1 / (power + 1), abs=2e-3)
    assert np.mean(np.exp(-((points - 0.3) ** 2) / 0.02) / density) == pytest.approx(0.25032, abs=1e-4)


def test_steps_are_added_until_the_scores_add_up(ours: Any) -> None:
    scorer = make_scorer(ours, TEXT)
    automatic = METHOD.explain(scorer, MethodOptions())
    assert automatic.baseline is not None
    value = scorer.erased_scores(scorer.nothing_erased)[0]
    assert automatic.tokens_T.sum() == pytest.approx(value - automatic.baseline, rel=0.01)
