"""Word vectors: neighbors, analogies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.errors import DataError, InputError
from regard.word_vectors.analogies import read_analogies
from regard.word_vectors.vectors import AnalogyScore, Neighbor, WordVectors, total_score

# Vectors of words: nearest, analogies, their score.


WORDS = ("man", "woman", "king", "queen", "boy", "girl", "apple")


@pytest.fixture
def vectors() -> WordVectors:
    # male or female, royal, young, fruit
    table = [[1, 0, 0, 0], [-1, 0, 0, 0], [1, 2, 0, 0], [-1, 2, 0, 0], [1, 0, 2, 0], [-1, 0, 2, 0], [0, 0, 0, 3]]
    return WordVectors(WORDS, np.array(table, np.float32))


def test_nearest_are_the_greatest_cosines(vectors: WordVectors) -> None:
    result = vectors.nearest("king", top=3)
    by_hand = sorted(((vectors.similarity("king", word), word) for word in WORDS if word != "king"), reverse=True)
    assert [near.word for near in result] == [word for _, word in by_hand[:3]]
    assert result[0].word == "queen"
    assert result[0].score == pytest.approx(3 / 5)
    nearest = vectors.nearest(vectors["king"], top=1)
    assert [(neighbor.word, neighbor.score) for neighbor in nearest] == [("king", pytest.approx(1.0))]
    assert len(vectors.nearest("king", top=50)) == 6


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogies_leave_out_the_words_of_the_query(vectors: WordVectors, method: str) -> None:
    assert vectors.analogy("man", "king", "woman", method=method)[0].word == "queen"  # type: ignore[arg-type]  # add, mul
    results = [near.word for near in vectors.analogy("man", "boy", "woman", top=9, method=method)]  # type: ignore[arg-type]  # add, mul
    assert results[0] == "girl"
    assert sorted(results) == ["apple", "girl", "king", "queen"]


def test_analogy_is_b_less_a_more_c(vectors: WordVectors) -> None:
    unit = vectors.table / np.linalg.norm(vectors.table, axis=1, keepdims=True)
    scores = unit @ (unit[2] - unit[0] + unit[1])
    assert vectors.analogy("man", "king", "woman", top=1)[0].score == pytest.approx(float(scores[3]))


def test_scores_count_known_questions_by_section(vectors: WordVectors) -> None:
    questions = {
        "family": [
            ("man", "king", "woman", "queen"),
            ("Man", "Boy", "Woman", "Girl"),
            ("man", "boy", "woman", "apple"),
        ],
        "fruit": [("man", "king", "apple", "pear")],
    }
    result = vectors.analogies(questions)  # type: ignore[arg-type]  # four words each
    assert result == {"family": AnalogyScore(2, 3, 3), "fruit": AnalogyScore(0, 0, 1)}
    assert total_score(result) == AnalogyScore(2, 3, 4)
    assert (total_score(result).accuracy, result["fruit"].accuracy) == (pytest.approx(2 / 3), 0.0)


def test_words_are_found_as_written_first() -> None:
    vectors = WordVectors(("Polish", "polish"), np.eye(2, dtype=np.float32))
    assert [vectors.find(word) for word in ("Polish", "polish", "POLISH", "polsh")] == [0, 1, 1, None]
    assert "POLISH" in vectors
    assert "polsh" not in vectors


def test_an_unknown_word_says_the_nearest_spelling(vectors: WordVectors) -> None:
    with pytest.raises(InputError, match=r'"quen" is not one of the 7 words with a vector.* Did you mean "queen"'):
        vectors.nearest("quen")
    with pytest.raises(InputError, match=r"with a vector\.$"):
        vectors["zzzzzz"]


def test_invalid_arguments_are_refused(vectors: WordVectors) -> None:
    with pytest.raises(InputError, match="twice"):
        WordVectors(("a", "a"), np.zeros((2, 3), np.float32))
    with pytest.raises(InputError, match="do not match"):
        WordVectors(("a",), np.zeros((2, 3), np.float32))
    with pytest.raises(InputError, match="do not match"):
        WordVectors((), np.zeros((0, 3), np.float32))
    with pytest.raises(InputError, match="expected \\(4,\\)"):
        vectors.nearest([1, 2])
    with pytest.raises(InputError, match="top is 0"):
        vectors.nearest("king", top=0)
    with pytest.raises(InputError, match="add, mul"):
        vectors.analogy("man", "king", "woman", method="div")  # type: ignore[arg-type]  # on purpose


def test_a_row_of_zeros_is_near_to_nothing() -> None:
    vectors = WordVectors(("a", "b"), np.array([[0, 0], [1, 0]], np.float32))
    assert vectors.nearest("a") == [Neighbor("b", 0.0)]


def test_a_formula_is_an_analogy(vectors: WordVectors) -> None:
    by_words = vectors.analogy("man", "king", "woman", top=2)
    by_formula = vectors.formula("king - man + woman", top=2)
    assert [near.word for near in by_formula] == [near.word for near in by_words]
    assert by_formula[0].score == pytest.approx(by_words[0].score)
    assert vectors.formula("king", top=1) == vectors.nearest("king", top=1)


@pytest.mark.parametrize("text", ["", "king -", "king man", "king - - man", "king + man woman"])
def test_formulas_that_are_none(vectors: WordVectors, text: str) -> None:
    with pytest.raises(InputError, match="is not a formula of words"):
        vectors.formula(text)


# Files of analogies.


def test_sections_questions_and_pairs(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_text(": family one\nman king woman queen\n\n: capitals\nParis France\nRome Italy\nOslo Norway\n")
    result = read_analogies(path)
    assert result["family one"] == [("man", "king", "woman", "queen")]
    assert len(result["capitals"]) == 6
    assert result["capitals"][:2] == [("Paris", "France", "Rome", "Italy"), ("Paris", "France", "Oslo", "Norway")]


def test_faults_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_text(": a\nman king woman\n")
    with pytest.raises(DataError, match=r"q.txt line 2: has 3 words; expected four"):
        read_analogies(path)
    path.write_text(": a\n")
    with pytest.raises(DataError, match="has no question"):
        read_analogies(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_analogies(tmp_path / "none.txt")
