"""Encodings, flat tokens and words as spans of the text."""

from __future__ import annotations

import copy
import pickle
import re
import unicodedata
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.vocabulary_files import tiny_tokenizer
from tokenizers import Tokenizer as Backend
from tokenizers import models

from regard.errors import InputError
from regard.text.encoding import Encoding
from regard.text.flat_tokens import bounds_of, ranges
from regard.text.tokenizer import Tokenizer
from regard.text.word_spans import word_spans

# Fields of an encoding are computed on first use.


def test_lazy_fields_equal_given_fields() -> None:
    one, other = tiny_tokenizer().encode("the man", "went"), tiny_tokenizer().encode("the man", "went")
    names = [field.name for field in fields(Encoding)]
    plain = Encoding(**{name: getattr(one, name) for name in names})
    assert one == other == plain
    assert hash(one) == hash(plain)
    assert repr(tiny_tokenizer().encode("the man", "went")) == repr(plain)
    encoding = tiny_tokenizer().encode("the man", "went")
    assert pickle.loads(pickle.dumps(encoding)) == copy.deepcopy(encoding) == plain
    assert replace(tiny_tokenizer().encode("the man", "went"), ids=(1,)) == replace(plain, ids=(1,))
    with pytest.raises(AttributeError, match="no attribute 'idz'"):
        one.idz  # noqa: B018  (the lookup is the test)
    with pytest.raises(FrozenInstanceError):
        one.ids = ()  # type: ignore[misc]  # the point of the test


# Index arrays of flat data.


def test_ranges():
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


def test_bounds():
    assert bounds_of([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert bounds_of([]).tolist() == [0]


# Texts that cannot be encoded are named in the error.


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", 3], "text 1 is of type int"),
        ([None], "text 0 is of type NoneType.*empty rows"),
        ([b"bytes"], "text 0 is of type bytes.*Decode it first"),
        (["fine", "a\ud83d"], r"text 1 has half of a surrogate pair \(U\+D83D\) at character 1"),
        ("one text", "Put it into a list"),
    ],
)
def test_value_that_is_not_a_text(texts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny_tokenizer().encode_batch(texts)


def test_suggested_fix_for_surrogates_works() -> None:
    broken = "\ud83d\ude00 and \ud83d"
    with pytest.raises(InputError, match="surrogatepass"):
        tiny_tokenizer().encode(broken)
    assert broken.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "😀 and \ufffd"


@pytest.mark.parametrize(
    "model", [models.WordLevel({"a": 0}, unk_token="[UNK]"), models.Unigram([("a", -1.0)]), models.WordPiece({"a": 0})]
)
def test_text_outside_a_vocabulary_without_unknown_token(model: models.Model) -> None:
    bare = Tokenizer(Backend(model))
    assert bare.encode_batch(["a"])[0].ids == (0,)
    with pytest.raises(InputError, match=r'text 1 \("zz"\) has a part.*unk_token.*regard tokenizer'):
        bare.encode_batch(["a", "zz", "yy"])
    with pytest.raises(InputError, match=r'pair 0 \("a"\)'):
        bare.encode_batch(["a"], ["zz"])
    with pytest.raises(InputError, match=r'the text \("zz"\)'):
        bare.encode("zz")


# Words of texts in several scripts, with marks and joiners.


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
