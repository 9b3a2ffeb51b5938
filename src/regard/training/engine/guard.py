"""Steps that would spoil the weights: not a number, or a loss far outside what is usual. Judged on the device."""

from __future__ import annotations

import torch
from torch import Tensor

USUAL = 0.02  # weight of the newest loss in the mean
PATIENT = 50  # steps before a loss can be called unusual
FAR = 10.0  # standard deviations


class LossGuard:
    """Keeps a mean of the losses, and counts what was skipped. No number is read back unless `counts` is called.

    A step is skipped when its gradient is not finite, or when its loss is both far outside what is usual and worse than
    at the start: a hard batch late in a training is neither.
    """

    def __init__(self, device: torch.device) -> None:
        # mean, variance, loss at the start, steps, skipped, skipped in a row
        self.state = torch.zeros(6, dtype=torch.float64, device=device)

    def should_skip(self, loss: Tensor, norm: Tensor) -> Tensor:
        """1.0 where the step is to be skipped, else 0.0."""
        mean, spread, start, seen, skipped, row = self.state.unbind()
        loss = loss.detach().double()
        unusual = (seen >= PATIENT) & (loss > mean + FAR * spread.sqrt()) & (loss > start)
        bad = unusual | ~torch.isfinite(norm) | ~torch.isfinite(loss)
        good = ~bad
        share = torch.clamp(1 / (seen + 1), min=USUAL)
        away = torch.where(good, loss - mean, 0.0)
        fresh = torch.stack(
            (
                mean + share * away,
                torch.where(good, (1 - share) * (spread + share * away.square()), spread),
                torch.where(good & (seen < PATIENT), torch.maximum(start, loss), start),
                seen + good,
                skipped + bad,
                torch.where(bad, row + 1, 0.0),
            )
        )
        self.state.copy_(fresh)
        return bad.float()

    def counts(self) -> tuple[int, int]:
        """Steps skipped so far, and how many of them in a row just now."""
        _, _, _, _, skipped, row = self.state.tolist()
        return int(skipped), int(row)
