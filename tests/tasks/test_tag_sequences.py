"""Words and tokens of a sentence, and the tokens around it."""

import warnings
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batching.framing import Frame
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import TagRecord
from regard.data.records.neighbors import with_neighbors
from regard.tasks.tag_sequences import (
    first_tokens,
    flat_word_columns,
    sentence_tokens,
    surrounded_sequences,
    word_columns,
)
from regard.text.learn import train_tokenizer_from_texts

KINDS = ("wordpiece", "bpe", "unigram", "char")


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(alphabet="ab é.-😀\u0301\u200d\tÅß", max_size=30))
def test_pieces_and_words_meet_by_their_place(kinds, kind, text):
    """Of any tokenizer: a piece is the first of a word it has a part in, and no other piece before it has."""
    record, result = TagRecord.from_text(text), kinds[kind].encode(text, special=False)
    firsts = list(first_tokens(record.spans, result.offsets))
    assert len(firsts) == len(record.spans)
    for (start, end), piece in zip(record.spans, firsts, strict=True):
        touching = [place for place, (left, right) in enumerate(result.offsets) if left < end and right > start]
        assert (piece is None) == (not touching)
        assert piece is None or piece in touching[:2]
    columns = word_columns(record.spans, result.offsets)
    covered = [word for word, end in zip(columns["word"], columns["upto"], strict=True) for word in range(word, end)]
    assert covered == [word for word, piece in enumerate(firsts) if piece is not None]


@pytest.fixture(scope="module")
def kinds():
    texts = ["ab ba a b é . - 😀 Å ß aa.bb-a", "ab é.-a b aaa bbb abab"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so little text gives fewer pieces than asked for
        results = [train_tokenizer_from_texts(texts, kind=kind, size=300, lowercase=False) for kind in KINDS]
    return dict(zip(KINDS, results, strict=True))


@pytest.mark.parametrize(
    ("spans", "offsets", "expected"),
    [
        ([(0, 2), (3, 5)], [(0, 1), (1, 2), (3, 5)], [0, 2]),  # pieces of one word
        ([(0, 2), (3, 5)], [(0, 2), (2, 5)], [0, 1]),  # a space that belongs to its piece
        ([(0, 2), (3, 5)], [(0, 2), (2, 3), (3, 5)], [0, 2]),  # a piece of mere space
        ([(0, 2), (3, 4), (5, 6)], [(0, 2), (5, 6)], [0, None, 1]),  # a word that left nothing
        ([(0, 1), (1, 2), (2, 3)], [(0, 3)], [0, 0, 0]),  # words in one piece
        ([(0, 3), (3, 5)], [(0, 4), (4, 5)], [0, 1]),  # a piece of two words, and one of the second alone
        ([(0, 1)], [(0, 1), (0, 1), (0, 1)], [0]),  # bytes of one character
        ([(0, 2)], [(0, 0), (0, 2)], [1]),  # a piece of nothing
        ([(0, 2)], [], [None]),
    ],
)
def test_first_pieces(spans, offsets, expected):
    assert list(first_tokens(spans, offsets)) == expected


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.text(alphabet="ab é.-😀", min_size=1, max_size=12), max_size=6), size=st.integers(0, 9))
def test_context_is_the_end_of_the_left_and_the_start_of_the_right(kinds, kind, texts, size):
    sentences = with_neighbors(TagRecord.from_text(text, document="1") for text in texts)
    records = [record for record in sentences if isinstance(record, TagRecord)]
    ids = [kinds[kind].encode(text, special=False).ids for text in texts]
    for row, (left, right) in enumerate(contexts(records, kinds[kind], size=size)):
        before = list(chain.from_iterable(ids[:row]))
        after = list(chain.from_iterable(ids[row + 1 :]))
        if all(len(tokens) >= len(text.split()) for tokens, text in zip(ids, texts, strict=True)):
            assert left == before[max(len(before) - size, 0) :]
            assert right == after[:size]
        (alone,) = contexts(records[row : row + 1], kinds[kind], size=size)
        assert alone == (left, right)  # whatever the other records are


def contexts(records, tokenizer, *, size):
    """The tokens before and after each record in its sequence."""
    tokens = sentence_tokens(records, tokenizer, size=size)
    limits: Any = SimpleNamespace(max_tokens=None, segments=1)
    sequences, _ = surrounded_sequences(Frame.of(tokenizer), tokens, Preprocessing(tokenizer, limits), size=size)
    bounds = sequences.examples.bounds.tolist()
    special, left, own, right, end = sequences.positions
    assert special.tolist() == bounds[:-1]
    ids = sequences.examples.ids
    return [(ids[left[row] : own[row]].tolist(), ids[right[row] : end[row]].tolist()) for row in range(len(bounds) - 1)]


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.text(alphabet="ab é.-😀\u0301\u200d\tÅß", max_size=20), max_size=5))
def test_columns_of_many_records_are_those_of_each(kinds, kind, texts):
    records = [TagRecord.from_text(text) for text in texts]
    tokens = sentence_tokens(records, kinds[kind], size=0).own
    columns = flat_word_columns(records, tokens)
    for row, record in enumerate(records):
        own = slice(*tokens.bounds[row : row + 2].tolist())
        expected = word_columns(record.spans, kinds[kind].encode(record.text, special=False).offsets)
        assert {name: values[own].tolist() for name, values in columns.items()} == {
            name: values.tolist() for name, values in expected.items()
        }
