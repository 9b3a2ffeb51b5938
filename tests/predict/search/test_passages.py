"""Passages are ranked by the cosine similarity of their vectors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.predict.search.texts import TEXTS, single

from regard.predict import Model
from regard.predict.search.passages import PassageVectors, rank_passages


def test_scores_are_cosines_and_the_best_come_first(model: Model) -> None:
    result = single(model.search(TEXTS, "lovely and warm", top=4))
    vectors, query = model.embed(TEXTS), model.embed(["lovely and warm"])[0]
    cosines = [float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for vector in vectors]
    order = sorted(range(len(TEXTS)), key=lambda row: (-round(cosines[row], 6), row))[:4]
    assert [match.row for match in result] == order
    assert [match.score for match in result] == pytest.approx([cosines[row] for row in order], abs=1e-5)
    assert [match.passage for match in result] == [TEXTS[row] for row in order]
    assert len(single(model.search(TEXTS, "film", top=100))) == len(TEXTS)


def test_several_queries_give_a_list_each(model: Model) -> None:
    result = model.search(TEXTS, ["a lovely film", "cold and dull"], top=1)
    assert [[match.text for match in matches] for matches in result if isinstance(matches, list)] == [
        ["a lovely film"],
        ["cold and dull"],
    ]


def test_a_long_text_is_found_by_its_best_passage(model: Model) -> None:
    long = " ".join(["cold and dull"] * 200 + ["great and warm and lovely"] * 12 + ["cold and dull"] * 200)
    match = single(model.search([long, "poor and cold"], "great and warm and lovely", top=1, window=48))[0]
    assert match.row == 0
    assert "great and warm and lovely" in match.passage
    assert len(match.passage) < len(long) / 10
    assert match.passage == long[match.start : match.end]


def test_equal_texts_have_equal_scores_and_the_order_of_the_file(model: Model) -> None:
    for copies in range(2, 24):  # a matrix product may compute its last rows differently
        matches = single(model.search(["lovely and warm"] * copies, "a warm film", top=copies))
        assert [match.row for match in matches] == list(range(copies))
        assert len({match.score for match in matches}) == 1


@pytest.mark.parametrize("copies", range(2, 24))
def test_equal_vectors_have_equal_scores(copies: int) -> None:
    draw = np.random.default_rng(copies)
    vector, query = draw.normal(size=(2, 384)).astype(np.float32)
    numbers = np.arange(copies)
    passages = PassageVectors(np.tile(vector, (copies, 1)), numbers, numbers * 0, numbers * 0 + 1)
    for top in (copies, 1):
        (ranked,) = rank_passages(passages, query[None], top)
        assert [index for index, _ in ranked] == list(range(top))
        (score,) = {score for _, score in ranked}
        assert score == pytest.approx(float(vector.astype(np.float64) @ query), abs=1e-4)
