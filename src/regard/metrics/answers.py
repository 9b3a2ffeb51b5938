"""Scores of answers to questions, as the official scripts of SQuAD count them; 0 to 1 instead of percent.

The rules are those of version 2.0, which hold for 1.1 too: empty gold answers (after normalization) are ignored, no
gold answer means that the right answer is the empty one, and an empty answer is right or wrong, never half right.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from regard.errors import InputError

ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
DROPPED = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, articles and extra white space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(DROPPED)).split())


def exact_match(predicted: str, gold: str) -> float:
    """Exact match: 1 if both are equal after normalization, else 0."""
    return float(normalize_answer(predicted) == normalize_answer(gold))


def token_f1(predicted: str, gold: str) -> float:
    """F1 of the words of both: 2 * common words / all words (Rajpurkar et al. 2016)."""
    return _overlap(normalize_answer(predicted).split(), normalize_answer(gold).split())


def _overlap(ours: list[str], theirs: list[str]) -> float:
    if not ours or not theirs:
        return float(ours == theirs)
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs))


def answer_scores(predicted: str, gold: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1, each with the best gold answer. Without gold answers the empty answer is right."""
    if isinstance(gold, str):
        raise InputError(f'The gold answers are the text "{gold}"; expected a list of texts, empty for no answer.')
    ours = normalize_answer(predicted)
    known = {answer for answer in map(normalize_answer, gold) if answer} or {""}
    if ours in known:
        return 1.0, 1.0
    words = ours.split()
    return 0.0, max(_overlap(words, answer.split()) for answer in known)


def best_threshold(
    scores: ArrayLike, no_answer: ArrayLike, answerable: ArrayLike, answered: ArrayLike, *, none: float = 0.0
) -> tuple[float, float]:
    """The best mean score that a threshold gives, and that threshold: a question is left unanswered above it.

    scores: of each answer, exact match or F1, as if no question were left unanswered.
    no_answer: score of leaving the question unanswered.
    answerable, answered: whether there is a gold answer; whether the predicted one is not empty.

    This is `find_best_thresh` of the official script, in one sort. As there, rows of equal `no_answer` are split in
    the given order, and the threshold is `none` where answering nothing is best: 0 there, which suits probabilities.
    """
    numbers = [np.asarray(scores, np.float64), np.asarray(no_answer, np.float64)]
    flags = [np.asarray(answerable, bool), np.asarray(answered, bool)]
    shapes = {part.shape for part in (*numbers, *flags)}
    if len(shapes) != 1 or numbers[0].ndim != 1 or not len(numbers[0]):
        raise InputError(f"Arrays of shapes {sorted(shapes)} were given; expected four of one length above 0.")
    order = np.argsort(numbers[1], kind="stable")
    gain = np.where(flags[0], numbers[0], np.where(flags[1], -1.0, 0.0))[order]
    reached = np.cumsum(np.concatenate([[float((~flags[0]).sum())], gain]))
    best = int(np.argmax(reached))  # the first of equal ones, as the script's > has it
    return float(reached[best]) / len(order), float(numbers[1][order[best - 1]]) if best else none
