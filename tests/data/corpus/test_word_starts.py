"""Word starts among tokens: they agree with the spaces of the text, and tokens between words are separate words."""

from __future__ import annotations

import numpy as np
import pytest

from regard.data.corpus.word_starts import WordStarts
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

TEXT = "The unbelievable market unbelievably closed, closing marketplaces."


def pieces_of(words: Tokenizer, text: str) -> list[str]:
    """The text of each run of tokens from one start to the next, without special ones."""
    ids = np.array(words.encode(text).ids)
    results: list[list[int]] = []
    for token, begins in zip(ids.tolist(), WordStarts.from_tokenizer(words)(ids).tolist(), strict=True):
        results = [*results, [token]] if begins else [*results[:-1], [*results[-1], token]]
    return [words.decode(run).strip() for run in results if words.decode(run).strip()]


@pytest.mark.parametrize(("kind", "size"), [("bpe", 275), ("unigram", 30)])
def test_spaces_part_words(kind: str, size: int) -> None:
    words = train_tokenizer_from_texts([TEXT] * 30, kind=kind, size=size)
    assert len(words.encode(TEXT).ids) > len(TEXT.split()) + 4
    assert pieces_of(words, TEXT) == TEXT.split()
    assert pieces_of(words, "The\nmarket closed") == ["The", "market", "closed"]


def test_wordpiece_parts_signs_too() -> None:
    words = train_tokenizer_from_texts([TEXT] * 30, kind="wordpiece", size=55, lowercase=False)
    ids = np.array(words.encode(TEXT).ids)
    assert len(ids) > len(TEXT.split()) + 6
    numbers = words.encode(TEXT).word_ids
    expected = [row == 0 or number is None or number != numbers[row - 1] for row, number in enumerate(numbers)]
    assert WordStarts.from_tokenizer(words)(ids).astype(bool).tolist() == expected


def test_character_vocabularies_do_not_mark_word_starts() -> None:
    with pytest.raises(InputError, match=r"do not mark word starts.*\"token\" or \"span\""):
        WordStarts.from_tokenizer(train_tokenizer_from_texts([TEXT], kind="char", size=60))
