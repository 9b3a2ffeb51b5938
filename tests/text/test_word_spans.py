"""Words of texts in several scripts, with marks and joiners."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.word_spans import word_spans


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    "text",
    [
        "don't stop",
        "caf\u00e9 au lait",
        "Rene\u0301 lives in Bogota\u0301, now",
        "\u0926\u093f\u0932\u094d\u0932\u0940 \u092e\u0947\u0902",  # Hindi
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian with a non-joiner
        "\U0001f469\u200d\U0001f680 \u2764\ufe0flove",
    ],
)
def test_words(text: str) -> None:
    expected = {
        "don't stop": ["don", "'", "t", "stop"],
        "caf\u00e9 au lait": ["caf\u00e9", "au", "lait"],
        "Rene\u0301 lives in Bogota\u0301, now": ["Rene\u0301", "lives", "in", "Bogota\u0301", ",", "now"],
        "\U0001f469\u200d\U0001f680 \u2764\ufe0flove": ["\U0001f469\u200d\U0001f680", "\u2764\ufe0f", "love"],
    }
    assert words(text) == expected.get(text, text.split())


def test_a_part_of_a_text() -> None:
    assert word_spans("a cat, Rene\u0301", 2, 6) == [(2, 5), (5, 6)]
    assert word_spans("Rene\u0301", 4) == [(4, 5)]  # a mark alone


@given(st.text(st.characters(blacklist_categories=("Mn", "Mc", "Me", "Cf", "Cs"))))
def test_without_marks_words_are_those_of_the_pattern(text: str) -> None:
    assert words(text) == re.findall(r"\w+|[^\w\s]", text)


@given(st.text())
def test_every_character_that_is_no_space_is_in_one_word(text: str) -> None:
    spans = word_spans(text)
    covered = [at for start, end in spans for at in range(start, end)]
    assert covered == [at for at, character in enumerate(text) if not re.match(r"\s", character)]


@given(st.text(st.characters(whitelist_categories=("Ll", "Lu", "Zs", "Po"), max_codepoint=0x24F)))
def test_decomposed_letters_make_the_same_words(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    composed = unicodedata.normalize("NFC", decomposed)
    assert [unicodedata.normalize("NFC", word) for word in words(decomposed)] == words(composed)
