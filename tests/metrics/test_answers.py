"""Answers are scored as the published SQuAD scripts score them; their steps are written out here once more."""

from __future__ import annotations

import collections
import re
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.metrics.answers import answer_scores, best_threshold, exact_match, normalize_answer, token_f1

WORDS = ["the", "a", "An", "cat", "Cat", "dog,", "…", "!", "U.S.", "the-cat", "x'y", "\t", "ß", ""]
texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join) | st.text(max_size=12)


def published_normal(text: str) -> str:
    def without_punctuation(part: str) -> str:
        return "".join(letter for letter in part if letter not in set(string.punctuation))

    def without_articles(part: str) -> str:
        return re.sub(re.compile(r"\b(a|an|the)\b", re.UNICODE), " ", part)

    return " ".join(without_articles(without_punctuation(text.lower())).split())


def published_f1(gold: str, predicted: str) -> float:
    first, second = published_normal(gold).split(), published_normal(predicted).split()
    same = sum((collections.Counter(first) & collections.Counter(second)).values())
    if len(first) == 0 or len(second) == 0:
        return int(first == second)
    if same == 0:
        return 0
    precision, recall = same / len(second), same / len(first)
    return (2 * precision * recall) / (precision + recall)


def published_scores(predicted: str, answers: list[str]) -> tuple[float, float]:
    gold = [answer for answer in answers if published_normal(answer)]
    if not gold:
        gold = [""]
    matches = [int(published_normal(answer) == published_normal(predicted)) for answer in gold]
    return max(matches), max(published_f1(answer, predicted) for answer in gold)


def published_threshold(
    predicted: dict[int, str], scores: dict[int, float], against: dict[int, float], has: dict[int, bool]
) -> tuple[float, float]:
    current = float(sum(1 for key in has if not has[key]))
    best, threshold = current, 0.0
    for key in sorted(against, key=lambda one: against[one]):
        if has[key]:
            difference = scores[key]
        else:
            difference = -1 if predicted[key] else 0
        current += difference
        if current > best:
            best, threshold = current, against[key]
    return best / len(scores), threshold


@given(texts, st.lists(texts, max_size=3))
def test_scores_as_published(predicted: str, gold: list[str]) -> None:
    assert normalize_answer(predicted) == published_normal(predicted)
    assert answer_scores(predicted, gold) == pytest.approx(published_scores(predicted, gold))


rows = st.lists(
    st.tuples(st.sampled_from(["", "cat", "dog"]), st.integers(0, 4), st.integers(-3, 9), st.booleans()),
    min_size=1,
    max_size=40,
)


@settings(deadline=None)
@given(rows)
def test_threshold_as_published(answer_rows: list[tuple[str, int, int, bool]]) -> None:
    predicted = dict(enumerate(row[0] for row in answer_rows))
    scores = dict(enumerate(row[1] / 4 for row in answer_rows))
    against = dict(enumerate(row[2] / 9 for row in answer_rows))
    has = dict(enumerate(row[3] for row in answer_rows))
    ours = best_threshold(
        list(scores.values()), list(against.values()), list(has.values()), [bool(text) for text in predicted.values()]
    )
    assert ours == pytest.approx(published_threshold(predicted, scores, against, has), abs=1e-12)


def test_the_threshold_found_gives_the_score_found() -> None:
    random = np.random.default_rng(0)
    has = random.random(500) < 0.5
    against = random.normal(size=500) - has
    scores = random.random(500)
    best, threshold = best_threshold(scores, against, has, np.ones(500, bool))
    assert best == pytest.approx(np.where(against > threshold, ~has, scores * has).mean())
    assert best_threshold([0.0], [2.0], [False], [True], none=-1.0) == (1.0, -1.0)


def test_plain_cases() -> None:
    assert exact_match("The Cat!", "cat") == 1
    assert token_f1("a black cat", "the cat") == pytest.approx(2 / 3)
    assert answer_scores("", []) == (1, 1)
    assert answer_scores("cat", []) == (0, 0)
    with pytest.raises(InputError, match="expected a list of texts"):
        answer_scores("cat", "cat")
    with pytest.raises(InputError, match="four of one length"):
        best_threshold([1.0], [], [True], [True])
