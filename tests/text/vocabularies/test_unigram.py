"""Unigram vocabularies: probable tokens, in an order that does not depend on hash tables."""

from __future__ import annotations

from tests.text.corpus import trained

from regard.text.vocabularies.unigram import _reproducible


def test_texts_end_with_a_special_token() -> None:
    tokenizer = trained("unigram")
    encoding = tokenizer.encode("the market", "the apples")
    assert encoding.ids.count(tokenizer.eos) == 2
    assert tokenizer.decode(encoding.ids[:-1]).startswith("the market")


def test_scores_are_rounded_and_sorted() -> None:
    pairs = [("<pad>", 0.0), ("b", -5.00004), ("the", -1.00000049), ("a", -5.0001), ("of", -1.0)]
    assert _reproducible(pairs, ["<pad>"]) == [
        ("<pad>", 0.0),
        ("of", -1.0),
        ("the", -1.0),
        ("a", -5.0001),
        ("b", -5.0001),
    ]
