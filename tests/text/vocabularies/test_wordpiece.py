"""WordPiece vocabularies."""

from __future__ import annotations

from tests.text.corpus import CORPUS, trained

from regard.text.learn import train_tokenizer_from_texts


def test_frequent_words_are_tokens() -> None:
    assert {"market", "apples", "the"} <= set(trained("wordpiece").backend.get_vocab())
    assert {"Ġmarket", "Ġthe"} <= set(trained("bpe").backend.get_vocab())
    assert {"▁the", "▁Monday"} <= set(trained("unigram").backend.get_vocab())


def test_rare_characters_are_unknown() -> None:
    result = train_tokenizer_from_texts([CORPUS], size=90, alphabet=30)
    assert result.unk in result.encode("東京").ids
    assert result.unk not in result.encode("the market").ids
