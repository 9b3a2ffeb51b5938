"""Character vocabularies: one token per character, the most frequent characters."""

from __future__ import annotations

import pytest

from regard.text.vocabularies.characters import learn
from regard.text.vocabularies.common import NoText, VocabularySettings, VocabularyTooSmall


def settings(size: int = 100, alphabet: int = 1000, *, lowercase: bool = False) -> VocabularySettings:
    return VocabularySettings("char", size, lowercase, alphabet, 1000)


def test_every_character_is_a_token() -> None:
    tokenizer = learn(["Ab ab", "b"], settings())
    assert tokenizer.size == 5 + 4
    assert tokenizer.decode(tokenizer.encode("b A").ids) == "b A"


def test_lowercase_and_alphabet() -> None:
    assert learn(["AaBb"], settings(lowercase=True)).size == 5 + 2
    rare = learn(["aaab"], settings(alphabet=1))
    assert rare.encode("b", special=False).ids == (rare.unk,)


def test_no_text_and_small_size() -> None:
    with pytest.raises(NoText):
        learn([" \n"], settings())
    with pytest.raises(VocabularyTooSmall, match="size 5 is too small") as error:
        learn(["a"], settings(size=5))
    assert error.value.needed == 6
