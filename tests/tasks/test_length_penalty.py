"""The length penalty of beam search: chosen by the score of sequences that are ranked again."""

from __future__ import annotations

import pytest
from tests.tasks.test_translate import reversals

from regard.generate.generator import Continuation
from regard.predict import create
from regard.tasks.length_penalty import GRID, best_continuation, best_length_penalty, length_penalty_scores
from regard.tasks.translate import Translate
from regard.text.learn import train_tokenizer_from_texts

SHORT = Continuation("", (5, 1), (-0.5, -0.5), -0.5, "end")  # -1 in 2 tokens
LONG = Continuation("", (6, 7, 8, 9, 1), (-0.4,) * 5, -0.4, "end")  # -2 in 5 tokens


@pytest.mark.parametrize(("penalty", "ids"), [(0.0, (5,)), (0.6, (5,)), (1.0, (6, 7, 8, 9)), (2.0, (6, 7, 8, 9))])
def test_rank_by_hand(penalty: float, ids: tuple[int, ...]) -> None:
    """-1 / 2 ** a against -2 / 5 ** a: equal where 2.5 ** a = 2, at 0.756."""
    assert best_continuation([SHORT, LONG], penalty).ids == ids


def test_the_best_score_nearest_to_one() -> None:
    assert best_length_penalty({0.0: 3.0, 0.8: 5.0, 1.0: 4.0}) == 0.8
    assert best_length_penalty({0.0: 5.0, 0.8: 5.0, 1.6: 5.0}) == 0.8


def test_score_of_penalty_one_is_that_of_beam_search() -> None:
    rows = reversals(6)
    tokenizer = train_tokenizer_from_texts([row.source for row in rows] * 9, kind="char", size=40)
    model = create("tiny-transformer", tokenizer=tokenizer, heads={"language": 0}, seed=1, device="cpu")
    preprocessing = model.preprocessing()
    scores = length_penalty_scores(Translate(), model.writer, rows, preprocessing, beams=3, batch_tokens=64)
    assert list(scores) == list(GRID)
    meter = Translate().meter()
    for row, text in zip(rows, model.translate([row.source for row in rows], beams=3), strict=True):
        meter.add(text, row.target)
    assert scores[1.0] == pytest.approx(meter.scores()["bleu"].value)
