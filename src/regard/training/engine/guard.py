"""Skip optimizer steps whose gradient is not finite or whose loss is an outlier. Decided on the device."""

from __future__ import annotations

import torch
from torch import Tensor

MIN_WEIGHT = 0.02  # of the newest loss in the running mean
MIN_STEPS = 50  # before a loss can be called an outlier
MAX_DEVIATION = 10.0  # standard deviations above the running mean


class LossGuard:
    """Tracks a running mean and variance of the loss and decides which steps to skip.

    A step is skipped when its gradient or loss is not finite, or when its loss is more than `MAX_DEVIATION` standard
    deviations above the running mean and also above the losses of the first steps: a hard batch late in a training is
    not skipped. Everything is computed on the device; only `counts` copies numbers to the host.
    """

    def __init__(self, device: torch.device) -> None:
        # running mean, running variance, highest loss of the first steps, steps, skipped, consecutive skipped
        self.state = torch.zeros(6, dtype=torch.float64, device=device)

    def should_skip(self, loss: Tensor, norm: Tensor) -> Tensor:
        """1.0 if the step should be skipped, else 0.0; updates the statistics."""
        mean, variance, start, steps, skipped, consecutive = self.state.unbind()
        loss = loss.detach().double()
        outlier = (steps >= MIN_STEPS) & (loss > mean + MAX_DEVIATION * variance.sqrt()) & (loss > start)
        bad = outlier | ~torch.isfinite(norm) | ~torch.isfinite(loss)
        good = ~bad
        weight = torch.clamp(1 / (steps + 1), min=MIN_WEIGHT)
        difference = torch.where(good, loss - mean, 0.0)
        state = torch.stack(
            (
                mean + weight * difference,
                torch.where(good, (1 - weight) * (variance + weight * difference.square()), variance),
                torch.where(good & (steps < MIN_STEPS), torch.maximum(start, loss), start),
                steps + good,
                skipped + bad,
                torch.where(bad, consecutive + 1, 0.0),
            )
        )
        self.state.copy_(state)
        return bad.float()

    def counts(self) -> tuple[int, int]:
        """Steps skipped so far, and the number of consecutive skipped steps at the moment."""
        *_, skipped, consecutive = self.state.tolist()
        return int(skipped), int(consecutive)
