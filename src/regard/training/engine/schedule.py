"""Learning rate schedules: the learning rate of each step as a fraction of the peak."""

from __future__ import annotations

import math

from regard.errors import InputError, did_you_mean, setting

SCHEDULES = ("linear", "cosine", "wsd", "sqrt", "constant")
DECAYING = ("linear", "cosine", "wsd")  # those that end near 0
WSD_DECAY = 0.2  # wsd: fraction of all steps in which the rate decays


def lr_factor(kind: str, step: int, total: int, warmup: float) -> float:
    """The fraction of the peak learning rate at a step, counted from 0.

    After a linear warm-up (`warmup` is a fraction of all steps below 1, a number of steps from 1 on), by `kind`:

    - linear: falls to 0 in a straight line, as in BERT (https://arxiv.org/abs/1810.04805).
    - cosine: falls along half a cosine (https://arxiv.org/abs/1608.03983).
    - wsd: stays at the peak, then falls to 0 in the last fifth: warm-up, stable, decay (https://arxiv.org/abs/2404.06395).
    - sqrt: falls with the inverse square root of the step, as in the 2017 Transformer (https://arxiv.org/abs/1706.03762).
    - constant: stays at the peak.
    """
    if kind not in SCHEDULES:
        raise InputError(f'{setting("schedule")} "{kind}" is not known.{did_you_mean(kind, SCHEDULES)}')
    warm = warmup_steps(total, warmup)
    if step < warm:
        return (step + 1) / (warm + 1)
    left = max(total - step, 0) / max(total - warm, 1)
    if kind == "linear":
        return left
    if kind == "cosine":
        return 0.5 * (1 + math.cos(math.pi * (1 - left)))
    if kind == "wsd":
        return min(1.0, max(total - step, 0) / max(WSD_DECAY * total, 1))
    if kind == "sqrt":
        return math.sqrt(max(warm, 1) / (step + 1)) if step >= max(warm, 1) else 1.0
    return 1.0


def warmup_steps(total: int, warmup: float) -> int:
    """Number of warm-up steps."""
    return min(int(warmup * total) if warmup < 1 else int(warmup), total)
