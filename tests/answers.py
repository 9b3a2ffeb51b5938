"""Comparison of answers in JSON."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch


@functools.cache
def rounding() -> float:
    """How much answers may differ: not at all, unless a product depends on the rows beside it, as on some CPUs."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(64, 32, generator=generator) for _ in range(2))
    whole = x @ weight.T
    return 0.0 if all(torch.equal(x[:rows] @ weight.T, whole[:rows]) for rows in range(1, 64)) else 1e-6


def assert_same(ours: Any, theirs: Any, *, abs: float | None = None) -> None:
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
        assert ours == pytest.approx(theirs, rel=0, abs=rounding() if abs is None else abs)
    else:
        assert ours == theirs
