"""The learning rate over a training, as a share of the highest."""

from __future__ import annotations

import math

from regard.errors import InputError, did_you_mean, setting

SCHEDULES = ("linear", "cosine", "wsd", "sqrt", "constant")
FALL = 0.2  # of a warm-up-stable-decay schedule: the share of all steps in which it falls


def lr_factor(kind: str, step: int, total: int, warmup: float) -> float:
    """The share at a step, counted from 0. `warmup` is a share of all steps, or a number of them from 1 on."""
    if kind not in SCHEDULES:
        raise InputError(f'{setting("schedule")} "{kind}" is not known.{did_you_mean(kind, SCHEDULES)}')
    rising = warmup_steps(total, warmup)
    if step < rising:
        return (step + 1) / (rising + 1)
    left = max(total - step, 0) / max(total - rising, 1)
    if kind == "linear":
        return left
    if kind == "cosine":
        return 0.5 * (1 + math.cos(math.pi * (1 - left)))
    if kind == "wsd":
        return min(1.0, max(total - step, 0) / max(FALL * total, 1))
    if kind == "sqrt":
        return math.sqrt(max(rising, 1) / (step + 1)) if step >= max(rising, 1) else 1.0
    return 1.0


def warmup_steps(total: int, warmup: float) -> int:
    """How many steps the rate rises."""
    return min(int(warmup * total) if warmup < 1 else int(warmup), total)
