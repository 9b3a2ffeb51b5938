"""Vocabularies of whole words: one token per word, the most frequent words."""

from __future__ import annotations

from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer_report import tokenizer_report

TEXTS = ["the man fed the dog.", "the woman fed the cat."]


def test_every_word_is_a_token() -> None:
    tokenizer = train_tokenizer_from_texts(TEXTS, kind="word")
    assert tokenizer.size == 5 + 7
    ids = tokenizer.encode("the woman fed the dog", special=False).ids
    assert tokenizer.decode(ids) == "the woman fed the dog"
    assert len(ids) == 5
    assert ids[0] == ids[3] == 5  # the most frequent word comes after the special tokens
    assert tokenizer.encode("The horse", special=False).ids == (tokenizer.unk, tokenizer.unk)
    assert tokenizer_report(tokenizer, TEXTS).kind == "word"


def test_rare_words_are_unknown() -> None:
    tokenizer = train_tokenizer_from_texts(TEXTS, kind="word", size=7)
    assert tokenizer.encode("the fed dog", special=False).ids.count(tokenizer.unk) == 2
