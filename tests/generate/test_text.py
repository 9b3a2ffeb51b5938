"""Pieces of text join to the text, whatever the tokens cut through; stops are found across them."""

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from regard.generate.text import TextStream, partial_stop_length, token_sequences, truncate_at_stop
from regard.text.tokenizer import Tokenizer


def byte_level():
    """Every byte is a token, and a few merges of them."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    for one, other in merges:
        vocabulary[one + other] = len(vocabulary)
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return Tokenizer(backend)


def wordpiece():
    words = ["[UNK]", "do", "n", "'", "t", "##n", "go", ".", ",", "is", "it"]
    backend = tokenizers.Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return Tokenizer(backend)


def streamed(tokenizer, ids, stops=()):
    pieces = TextStream(tokenizer.decode, stops)
    results = [pieces.add(ids[: n + 1]) for n in range(len(ids))]
    return [*results, pieces.add(ids, last=True)]


@given(st.text(max_size=30))
def test_pieces_join_to_the_text_and_hold_no_half_characters(text):
    tokenizer = byte_level()
    result = streamed(tokenizer, list(tokenizer.encode(text).ids)) if text else []
    assert "".join(result) == text
    assert all("\ufffd" not in piece for piece in result) or "\ufffd" in text


@given(st.lists(st.integers(0, 258), min_size=1, max_size=20))
def test_any_bytes_join_to_what_is_decoded(ids):
    tokenizer = byte_level()
    assert "".join(streamed(tokenizer, ids)) == tokenizer.decode(ids)


def test_a_piece_comes_as_soon_as_it_is_certain():
    tokenizer = byte_level()
    ids = list(tokenizer.encode("aé the").ids)
    assert streamed(tokenizer, ids) == ["", "a", "", "é", " the"]


@given(st.lists(st.sampled_from(range(1, 11)), min_size=1, max_size=12))
def test_what_a_later_token_changes_is_not_given_out_before(ids):
    """A cleaned-up "do n't" becomes "don't"; a full stop takes the space away."""
    tokenizer = wordpiece()
    result = "".join(streamed(tokenizer, ids))
    assert tokenizer.decode(ids).startswith(result[:-8]) or result == tokenizer.decode(ids)


@given(st.text("ab#\n", max_size=20), st.lists(st.text("ab#\n", min_size=1, max_size=4), max_size=3))
def test_nothing_of_a_stop_is_ever_given_out(text, stops):
    tokenizer = byte_level()
    ids = list(tokenizer.encode(text).ids) if text else []
    result = streamed(tokenizer, ids, stops) if ids else [""]
    assert "".join(result) == truncate_at_stop(text, stops)


def test_a_possible_start_of_a_stop_string_is_delayed():
    assert partial_stop_length("abc##", ["###"]) == 2
    assert partial_stop_length("abc", ["cd", "bcd"]) == 2
    assert partial_stop_length("abc", ["x"]) == 0
    assert truncate_at_stop("one\ntwo ### three", ["###", "\n"]) == "one"


@pytest.mark.parametrize("every", [True, False])
def test_words_as_runs(every):
    tokenizer = byte_level()
    the, spaced = list(tokenizer.encode("the").ids), list(tokenizer.encode(" the").ids)
    assert token_sequences(["the", [7, 8]], tokenizer, every=every) == ([spaced, the] if every else [spaced]) + [[7, 8]]
