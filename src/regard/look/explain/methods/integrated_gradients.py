"""Integrated gradients (Sundararajan et al. 2017): gradients along the straight path from a baseline to the text.

The baseline is the text with every word masked (the mean of all token embeddings where there is
no mask token); special tokens stay. The
scores add up to the score of the text minus that of the baseline. The integral is computed with Gauss-Legendre
quadrature; without a number of steps, it is doubled until the scores add up to within 0.8 percent.

Shapes: B points of the path, S positions of a sequence, E width of the vectors.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from regard.look.explain.methods.method import Attribution, Floats, Method, MethodOptions, needs_gradients
from regard.look.explain.scorer import GRADIENT_TOKENS, Scorer, tokens_at_once
from regard.look.explain.tokenized import InputSequence

FIRST_STEPS, MOST_STEPS = 24, 384
TOLERANCE = 0.008  # of the difference between the text and the baseline


@cache
def quadrature(steps: int) -> tuple[Floats, Floats]:
    """Points from 0 to 1 and their weights (Gauss-Legendre)."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (points + 1) / 2, weights / 2


def path_gradients(scorer: Scorer, sequence: InputSequence, start_SE: Tensor, end_SE: Tensor, steps: int) -> Tensor:
    """(S, E) the mean gradient on the straight path."""
    points, weights = quadrature(steps)
    total_SE = torch.zeros_like(end_SE, dtype=torch.float64)
    at_once = max(1, tokens_at_once(end_SE.device, GRADIENT_TOKENS) // len(end_SE))
    for first in range(0, steps, at_once):
        some = slice(first, first + at_once)
        alpha_B11 = torch.tensor(points[some], dtype=end_SE.dtype, device=end_SE.device).view(-1, 1, 1)
        x_BSE = (start_SE + alpha_B11 * (end_SE - start_SE)).requires_grad_()
        with torch.enable_grad():
            (gradient_BSE,) = torch.autograd.grad(scorer.score_vectors(sequence, x_BSE).sum(), x_BSE)
        weight_B = torch.tensor(weights[some], device=end_SE.device)
        total_SE += torch.einsum("b,bse->se", weight_B, gradient_BSE.double())
    return total_SE


def integrate(scorer: Scorer, sequence: InputSequence, start_SE: Tensor, end_SE: Tensor, steps: int) -> Floats:
    """(S,) the integrated gradients of each position."""
    gradients_SE = path_gradients(scorer, sequence, start_SE, end_SE, steps)
    scores_S: Floats = ((end_SE - start_SE).double() * gradients_SE).sum(-1).cpu().numpy()
    return scores_S


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    text = scorer.text
    tokens_T = np.zeros(len(text))
    baseline, most_steps = 0.0, 0
    for sequence in text.sequences:
        end_SE = scorer.token_vectors(sequence)
        start_SE = scorer.baseline_vectors(sequence, end_SE)
        with torch.no_grad():
            low, high = scorer.score_vectors(sequence, torch.stack((start_SE, end_SE))).double().tolist()
        steps = options.steps or FIRST_STEPS
        scores_S = integrate(scorer, sequence, start_SE, end_SE, steps)
        while (
            options.steps is None
            and steps < MOST_STEPS
            and abs(scores_S.sum() - (high - low)) > TOLERANCE * abs(high - low)
        ):
            steps *= 2
            scores_S = integrate(scorer, sequence, start_SE, end_SE, steps)
        np.add.at(tokens_T, list(sequence.index), scores_S / len(text.sequences))
        baseline += low / len(text.sequences)
        most_steps = max(most_steps, steps)
    return Attribution(tokens_T, baseline=baseline, details={"steps": most_steps})


METHOD = Method("integrated_gradients", "integrated gradients", explain, needs_gradients)
