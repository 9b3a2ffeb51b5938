"""Texts are tokenized by their words exactly as the tokenizer itself does it."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.text import tokenizer as tokenizer_module
from regard.text.flat_tokens import flat_encodings, join_tokens
from regard.text.learn import train_tokenizer_from_texts
from regard.text.word_cache import WordCache, cpu_count

ALPHABET = "abAB1_.,-'[]é“”中😀\u0301\u200d\u00a0\ufffdİß\x00\x7f \t\n\r"


@pytest.fixture(scope="module", params=[True, False], ids=["lower", "cased"])
def tokenizer(request):
    texts = ["ab ba a b A B aab abb 1 11 _ . , - ' [ ] é “ ” 中 😀 ß i"] * 3
    with pytest.warns(UserWarning, match="tokens"):  # so little text gives fewer than asked for
        return train_tokenizer_from_texts(texts, kind="wordpiece", size=300, lowercase=request.param)


def reference(tokenizer, texts):
    return flat_encodings(tokenizer.backend.encode_batch(texts, add_special_tokens=False), offsets=True)


def assert_equal(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        assert one.tolist() == other.tolist()


@settings(deadline=None)
@given(texts=st.lists(st.text(alphabet=ALPHABET, max_size=30), max_size=6))
@example(texts=["", "a", "ab.[MASK] a", "[mask] b"])
@example(texts=["a\u0301 \u0301b", "é.\u0301", "x" * 120, "don't stop_now"])
def test_tokens_of_words_are_those_of_the_texts(tokenizer, texts):
    table = WordCache(tokenizer.backend)
    assert_equal(table.encode(texts, lambda others: reference(tokenizer, others)), reference(tokenizer, texts))


def test_known_words_and_several_parts(tokenizer, monkeypatch):
    monkeypatch.setattr("regard.text.word_cache.CHUNK", 40)
    texts = [f"ab a{'b' * (number % 7)} é. [MASK]"[: number % 19] for number in range(60)]
    table = WordCache(tokenizer.backend)
    for _ in range(2):
        assert_equal(table.encode(texts, lambda others: reference(tokenizer, others)), reference(tokenizer, texts))
    monkeypatch.setattr("regard.text.word_cache.MAX_WORDS", 3)
    assert_equal(table.encode(texts, lambda others: reference(tokenizer, others)), reference(tokenizer, texts))


@pytest.mark.parametrize("offsets", [True, False])
def test_flat_batch_uses_words_for_many_texts(tokenizer, monkeypatch, offsets):
    monkeypatch.setattr(tokenizer_module, "cpu_count", lambda: 2)
    monkeypatch.setattr(tokenizer_module, "FEW_CHARACTERS", 0)
    tokenizer.__dict__.pop("_word_cache", None)
    texts = ["ab a.", "a\x00b", "", "b é"]
    tokens = tokenizer.flat_batch(texts, offsets=offsets)
    expected = reference(tokenizer, texts)
    assert_equal(tokens[:2], expected[:2])
    assert tokens.offsets.tolist() == (expected.offsets.tolist() if offsets else [])
    with pytest.raises(InputError, match="text 1 is of type int"):
        tokenizer.flat_batch(["a", 1, "b"])
    tokenizer.__dict__.pop("_word_cache")


def test_other_tokenizers_have_no_table():
    with pytest.warns(UserWarning, match="tokens"):
        bpe = train_tokenizer_from_texts(["a b ab ba"], kind="bpe", size=300)
    assert not WordCache.fits(bpe.backend)


def test_take_and_join(tokenizer):
    tokens = reference(tokenizer, ["ab a", "", "b"])
    order = np.array([2, 0, 1])
    assert_equal(tokens.take(order), reference(tokenizer, ["b", "ab a", ""]))
    assert_equal(join_tokens([tokens, tokens]), reference(tokenizer, ["ab a", "", "b"] * 2))
    assert join_tokens([]).bounds.tolist() == [0]


def test_cores():
    assert cpu_count() >= 1
