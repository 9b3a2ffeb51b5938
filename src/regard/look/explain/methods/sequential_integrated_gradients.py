"""Sequential integrated gradients (Enguehard 2023): integrated gradients of one word at a time.

For each word, the path starts at the text with only this word masked, so that every point on it is close to a real
text. With many steps a word's score approaches that of occlusion with the same baseline; few steps are a smoothed
version of it.

Shapes: B points on the paths of several words, S positions of a sequence, E width of the vectors.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from regard.look.explain.methods.method import Attribution, Floats, Method, MethodOptions, needs_gradients
from regard.look.explain.scorer import GRADIENT_TOKENS, Scorer, tokens_at_once
from regard.look.explain.tokenized import InputSequence

STEPS = 4


@cache
def quadrature(steps: int) -> tuple[Floats, Floats]:
    """Points from 0 to 1 and their weights (Gauss-Legendre)."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (points + 1) / 2, weights / 2


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    text = scorer.text
    tokens_T = np.zeros(len(text))
    masks = scorer.word_masks(text.erasable_words)
    for sequence in text.sequences:
        own = torch.tensor(masks[:, list(sequence.index)], device=scorer.device)
        words_WS = own[own.any(1)]  # those with tokens in this window
        scores_S = _sequence_scores(scorer, sequence, words_WS, options)
        np.add.at(tokens_T, list(sequence.index), scores_S / len(text.sequences))
    return Attribution(tokens_T, details={"steps": options.steps or STEPS})


def _sequence_scores(scorer: Scorer, sequence: InputSequence, words_WS: Tensor, options: MethodOptions) -> Floats:
    """(S,) the scores of the tokens of all words."""
    steps, done = options.steps or STEPS, 0
    end_SE = scorer.token_vectors(sequence)
    change_SE = end_SE - scorer.baseline_vectors(sequence, end_SE)
    points, weights = (torch.tensor(values, device=end_SE.device) for values in quadrature(steps))
    total_S = torch.zeros(len(end_SE), dtype=torch.float64, device=end_SE.device)
    at_once = max(1, tokens_at_once(end_SE.device, GRADIENT_TOKENS) // (len(end_SE) * steps))
    for some_WS in words_WS.split(at_once):
        masked_BS = some_WS.repeat_interleave(steps, 0)
        rest_B = (1 - points).repeat(len(some_WS)).to(end_SE.dtype)
        x_BSE = (end_SE - (rest_B.unsqueeze(1) * masked_BS).unsqueeze(2) * change_SE).requires_grad_()
        with torch.enable_grad():
            (gradient_BSE,) = torch.autograd.grad(scorer.score_vectors(sequence, x_BSE).sum(), x_BSE)
        scores_BS = (gradient_BSE * change_SE).double().sum(-1) * masked_BS
        total_S += (scores_BS * weights.repeat(len(some_WS)).unsqueeze(1)).sum(0)
        done += len(some_WS)
        options.report("words", done, len(words_WS))
    summed: Floats = total_S.cpu().numpy()
    return summed


METHOD = Method("sequential_integrated_gradients", "sequential integrated gradients", explain, needs_gradients)
