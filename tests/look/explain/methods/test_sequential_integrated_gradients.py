"""One word at a time: with many steps the same as occlusion."""

from __future__ import annotations

from typing import Any

import pytest
from tests.look.tiny_models import TEXT


def test_sequential_integrated_gradients_with_many_steps_are_occlusion(ours: Any) -> None:
    occlusion = ours.explain(TEXT, method="occlusion")
    path = ours.explain(TEXT, method="sequential_integrated_gradients", steps=32)
    for one, other in zip(occlusion.words, path.words, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
