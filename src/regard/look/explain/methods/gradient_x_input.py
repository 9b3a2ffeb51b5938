"""Gradient times input: the score's derivative at each token embedding, times the embedding (Shrikumar et al. 2016)."""

from __future__ import annotations

import numpy as np
import torch

from regard.look.explain.methods.method import Attribution, Method, MethodOptions, needs_gradients
from regard.look.explain.scorer import Scorer


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    text = scorer.text
    tokens_T = np.zeros(len(text))
    for sequence in text.sequences:
        x_1SE = scorer.token_vectors(sequence).unsqueeze(0).requires_grad_()
        with torch.enable_grad():
            score_1 = scorer.score_vectors(sequence, x_1SE)
            (gradient_1SE,) = torch.autograd.grad(score_1.sum(), x_1SE)
        scores_S = (gradient_1SE * x_1SE).detach()[0].double().sum(-1)
        np.add.at(tokens_T, list(sequence.index), scores_S.cpu().numpy() / len(text.sequences))
    return Attribution(tokens_T)


METHOD = Method("gradient_x_input", "gradient × input", explain, needs_gradients)
