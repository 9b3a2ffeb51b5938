"""Integrated gradients (Sundararajan et al. 2017): gradients along the straight path from a baseline to the text.

The baseline is the text with every word masked (the mean of all token embeddings where there is
no mask token); special tokens stay. The
scores add up to the score of the text minus that of the baseline. The gradient
changes most in the first half of the path, where words emerge from their masks, so more points are there (`dense`).
Their number is tripled until the scores add up to within one percent. With a given number of steps, the points are the
middles of equal parts.

Shapes: B points of the path, S positions of a sequence, E width of the vectors.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.look.explain.methods.method import Attribution, Floats, Method, MethodOptions, needs_gradients
from regard.look.explain.scorer import GRADIENT_TOKENS, Scorer, tokens_at_once
from regard.look.explain.tokenized import InputSequence

FIRST_STEPS, MOST_STEPS = 12, 324
TOLERANCE = 0.01  # of the difference between the text and the baseline


def midpoints(steps: int) -> Floats:
    """The middles of `steps` equal parts of the path from 0 to 1."""
    points: Floats = (np.arange(steps) + 0.5) / steps
    return points


def dense(parts: Floats) -> tuple[Floats, Floats]:
    """Points from 0 to 1 that are densest at 0.3, one for each of `parts`, and the density there.

    The density is 0.3 times an even one plus 0.7 times that of the beta distribution with 2 and 3.5.
    """
    grid = np.linspace(0, 1, 4097)
    cumulative = 0.3 * grid + 0.7 * (1 - (1 - grid) ** 3.5 * (1 + 3.5 * grid))
    points: Floats = np.interp(parts, cumulative, grid)
    density: Floats = 0.3 + 0.7 * 15.75 * points * (1 - points) ** 2.5
    return points, density


def path_gradients(
    scorer: Scorer, sequence: InputSequence, start_SE: Tensor, end_SE: Tensor, parts: Floats, options: MethodOptions
) -> Tensor:
    """(S, E) the mean gradient at these parts of the straight path."""
    points, density = dense(parts) if options.steps is None else (parts, np.ones(len(parts)))
    total_SE = torch.zeros_like(end_SE, dtype=torch.float64)
    at_once = max(1, tokens_at_once(end_SE.device, GRADIENT_TOKENS) // len(end_SE))
    for first in range(0, len(points), at_once):
        some = points[first : first + at_once]
        alpha_B11 = torch.tensor(some, dtype=end_SE.dtype, device=end_SE.device).view(-1, 1, 1)
        x_BSE = (start_SE + alpha_B11 * (end_SE - start_SE)).requires_grad_()
        with torch.enable_grad():
            (gradient_BSE,) = torch.autograd.grad(scorer.score_vectors(sequence, x_BSE).sum(), x_BSE)
        weight_B = torch.tensor(1 / density[first : first + at_once], device=end_SE.device)
        total_SE += torch.einsum("b,bse->se", weight_B, gradient_BSE.double())
        options.report("steps", first + len(some), len(points))
    return total_SE / len(points)


def integrate(scorer: Scorer, sequence: InputSequence, options: MethodOptions) -> tuple[Floats, float]:
    """(S,) the integrated gradients of each position, the score of the baseline."""
    end_SE = scorer.token_vectors(sequence)
    start_SE = scorer.baseline_vectors(sequence, end_SE)
    with torch.no_grad():
        low, high = scorer.score_vectors(sequence, torch.stack((start_SE, end_SE))).double().tolist()
    change_SE = (end_SE - start_SE).double()
    steps = options.steps or FIRST_STEPS
    mean_SE = path_gradients(scorer, sequence, start_SE, end_SE, midpoints(steps), options)
    while options.steps is None and steps < MOST_STEPS:
        if abs(float((change_SE * mean_SE).sum()) - (high - low)) <= TOLERANCE * abs(high - low):
            break
        steps *= 3  # the middle one of three parts is the old point
        new = np.delete(midpoints(steps), np.s_[1::3])
        mean_SE = (mean_SE + 2 * path_gradients(scorer, sequence, start_SE, end_SE, new, options)) / 3
    scores_S: Floats = (change_SE * mean_SE).sum(-1).cpu().numpy()
    return scores_S, low


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    text = scorer.text
    tokens_T = np.zeros(len(text))
    baseline = 0.0
    for sequence in text.sequences:
        scores_S, low = integrate(scorer, sequence, options)
        np.add.at(tokens_T, list(sequence.index), scores_S / len(text.sequences))
        baseline += low / len(text.sequences)
    return Attribution(tokens_T, baseline=baseline)


METHOD = Method("integrated_gradients", "integrated gradients", explain, needs_gradients)
