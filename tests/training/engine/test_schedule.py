"""Rates against their closed forms."""

from __future__ import annotations

import math

import pytest

from regard.errors import InputError
from regard.training.engine.schedule import SCHEDULES, lr_factor, warmup_steps

TOTAL, WARM = 100, 10
FORMS = {
    "linear": lambda step: (TOTAL - step) / (TOTAL - WARM),
    "cosine": lambda step: 0.5 + 0.5 * math.cos(math.pi * (step - WARM) / (TOTAL - WARM)),
    "wsd": lambda step: 1.0 if step <= 80 else (TOTAL - step) / 20,
    "sqrt": lambda step: math.sqrt(WARM / (step + 1)),
    "constant": lambda step: 1.0,
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_closed_forms(kind: str) -> None:
    for step in range(WARM):
        assert lr_factor(kind, step, TOTAL, 0.1) == pytest.approx((step + 1) / (WARM + 1))
    for step in range(WARM, TOTAL):
        assert lr_factor(kind, step, TOTAL, WARM) == pytest.approx(FORMS[kind](step)), step


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("total", [1, 2, 7])
@pytest.mark.parametrize("warmup", [0.0, 0.5, 3, 100])
def test_every_step_moves_and_none_is_above_the_highest(kind: str, total: int, warmup: float) -> None:
    assert all(0 < lr_factor(kind, step, total, warmup) <= 1 for step in range(total))


def test_a_warm_up_is_a_share_or_a_number() -> None:
    assert (warmup_steps(200, 0.1), warmup_steps(200, 1), warmup_steps(200, 30), warmup_steps(5, 30)) == (20, 1, 30, 5)


def test_an_unknown_one() -> None:
    with pytest.raises(InputError, match=r'"cosin" is not known. Did you mean "cosine"'):
        lr_factor("cosin", 0, 1, 0)
