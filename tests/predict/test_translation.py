"""Alignments of translations by token and by word."""

from __future__ import annotations

import pytest

from regard.predict.translation import Alignment, Translated


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (("▁ein", "▁klei", "nes"), ("▁a", "▁small")),
        (("Ġein", "Ġklei", "nes"), ("Ġa", "Ġsmall")),
        (("ein", "klei", "##nes"), ("a", "small")),
    ],
)
def test_tokens_of_a_word_are_added_up(source: tuple[str, ...], target: tuple[str, ...]) -> None:
    words = Alignment(source, target, ((0.5, 0.25, 0.25), (0.0, 0.5, 0.5))).by_word()
    assert (words.source, words.target) == (("ein", "kleines"), ("a", "small"))
    assert words.weights == ((0.5, 0.5), (0.0, 1.0))


def test_rows_of_a_target_word_are_averaged() -> None:
    words = Alignment(("▁a", "▁b"), ("▁c", "d"), ((1.0, 0.0), (0.5, 0.5))).by_word()
    assert (words.target, words.weights) == (("cd",), ((0.75, 0.25),))


def test_json_has_alignments_only_where_there_are_some() -> None:
    alignment = Alignment(("a",), ("b",), ((1.0,),))
    assert "alignments" not in Translated("b", -1.0).json()
    assert Translated("b", -1.0, alignments=(alignment,)).json()["alignments"][0]["source"] == ("a",)
    assert Translated("b", -1.0).text == "b"
