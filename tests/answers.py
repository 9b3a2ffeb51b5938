"""Comparison of answers in JSON."""

from __future__ import annotations

from typing import Any

import pytest


def assert_same(ours: Any, theirs: Any, *, abs: float = 1e-6) -> None:
    """Answers are the same but for rounding: on some CPUs a product depends on the number of rows beside it."""
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key], abs=abs)
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other, abs=abs)
    else:
        assert ours == (pytest.approx(theirs, abs=abs) if isinstance(ours, float) else theirs)
