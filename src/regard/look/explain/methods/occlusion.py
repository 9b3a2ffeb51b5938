"""Occlusion: how much the score falls when a word is erased (Zeiler and Fergus 2014; Li et al. 2016).

Every word is erased on its own: all its tokens are replaced by the mask token, or removed where there is none. The
tokens of a word share its score equally.
"""

from __future__ import annotations

import numpy as np

from regard.look.explain.methods.method import Attribution, Method, MethodOptions
from regard.look.explain.scorer import Scorer

AT_ONCE = 128  # words erased between two reports of the progress


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    text = scorer.text
    numbers = text.erasable_words
    masks = np.concatenate((scorer.nothing_erased, scorer.word_masks(numbers)))
    parts = []
    for first in range(0, len(masks), AT_ONCE):
        parts.append(scorer.erased_scores(masks[first : first + AT_ONCE]))
        options.report("words", min(first + AT_ONCE, len(masks)), len(masks))
    scores = np.concatenate(parts)
    tokens_T, words_W = np.zeros(len(text)), np.zeros(len(text.words))
    for number, mask_T, score in zip(numbers, masks[1:], scores[1:], strict=True):
        words_W[number] = scores[0] - score
        tokens_T[mask_T] = words_W[number] / mask_T.sum()
    return Attribution(tokens_T, words_W)


METHOD = Method("occlusion", "occlusion", explain)
