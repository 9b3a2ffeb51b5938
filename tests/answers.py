"""Comparison of answers in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from regard.model.linear import can_pack

ROUNDING = 0.0 if can_pack() else 1e-6  # without packed weights, a product may depend on the rows beside it


def assert_same(ours: Any, theirs: Any, *, abs: float = ROUNDING) -> None:
    """Answers are the same, but for rounding."""
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key], abs=abs)
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other, abs=abs)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=0, abs=abs)
    else:
        assert ours == theirs
