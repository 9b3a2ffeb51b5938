"""N-grams of texts as features: their hashes, names and file."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from regard.errors import FolderError, InputError
from regard.text.features import ngrams, words
from regard.text.features.encoding import FeatureBackend, FeatureEncoding
from regard.text.features.files import KINDS, read_features
from regard.text.features.hashes import Hashes, character_hashes, code_points, split_keys, unique_keys, word_hashes
from regard.text.features.ngrams import NgramCounter, NgramRanges, Ngrams
from regard.text.features.words import FEATURES, WordFeatures, collapsed, word_features, word_shape
from regard.text.tokenizer import Tokenizer

# Hashes of n-grams: the same n-grams as scikit-learn's analyzers find.


WORD = r"\w+(?:['’]\w+)*|[^\w\s]"
TEXTS = st.text(st.sampled_from("ab é'’.,!_ \t\n中🙂İß1"), max_size=30)


def grams(text: str, *, words: bool) -> set[str]:
    options = {"analyzer": "word", "token_pattern": WORD, "ngram_range": (1, 2)}
    if not words:
        options = {"analyzer": "char_wb", "ngram_range": (2, 5)}
    return set(CountVectorizer(**options).build_analyzer()(text))


def hashes(texts: list[str], *, words: bool) -> list[set[int]]:
    compute: Callable[..., Hashes] = word_hashes if words else character_hashes
    keys = compute(code_points(texts, lowercase=True), *((1, 2) if words else (2, 5)))
    values, owners = split_keys(unique_keys(keys))
    return [set(values[owners == row].tolist()) for row in range(len(texts))]


@pytest.mark.parametrize("words", [True, False])
@settings(deadline=None)  # the first call computes tables
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_have_the_n_grams_of_scikit_learn(words: bool, texts: list[str]) -> None:
    """Equal n-grams have equal hashes and others do not, within a text and across texts."""
    expected = [grams(text, words=words) for text in texts]
    actual = hashes(texts, words=words)
    assert [len(one) for one in actual] == [len(one) for one in expected]
    for row in range(len(texts)):
        for other in range(row):
            assert len(actual[row] & actual[other]) == len(expected[row] & expected[other])


def test_the_hash_of_an_n_gram_does_not_depend_on_where_it_is() -> None:
    (alone,), (_, second) = hashes(["warm soup"], words=True), hashes(["cold tea.", "the warm soup"], words=True)
    assert alone < second


def test_surrogates_and_empty_texts() -> None:
    first, second, third = hashes(["", "\ud800 a", " \n "], words=True)
    assert (len(first), len(second), len(third)) == (0, 3, 0)


def test_words_are_those_of_the_regular_expression() -> None:
    text = "It’s o'clock, rock 'n' roll_1!"
    assert len(hashes([text], words=True)[0]) == len(grams(text, words=True))
    assert re.findall(WORD, text)[:2] == ["It’s", "o'clock"]


def test_keys_are_sorted_and_unique() -> None:
    keys = unique_keys(np.array([5 << 16, 3 << 16 | 1, 5 << 16, 3 << 16], np.uint64))
    values, owners = split_keys(keys)
    assert values.tolist() == [3, 3, 5]
    assert owners.tolist() == [0, 1, 0]


# N-grams as tokens: the vocabulary and its document frequencies are those of scikit-learn.


TEXTS_NGRAMS = ["The soup was warm, warm!", "Nobody's tea", "", "the tea was cold; the soup too", "la café était là"]


def counted(min_texts: int = 1, limit: int = 10**6) -> tuple[Ngrams, Any]:
    counter = NgramCounter(NgramRanges())
    counter.add(TEXTS_NGRAMS)
    return counter.vocabulary(min_texts=min_texts, limit=limit)


def oracles(**options: Any) -> tuple[CountVectorizer, CountVectorizer]:
    words = CountVectorizer(token_pattern=WORD, ngram_range=(1, 2), binary=True, **options)
    return words, CountVectorizer(analyzer="char_wb", ngram_range=(2, 5), binary=True, **options)


@pytest.mark.parametrize("min_texts", [1, 2])
def test_document_frequencies_are_those_of_scikit_learn(min_texts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for characters in (1 << 20, 20):  # in one part, and in several
        monkeypatch.setattr(ngrams, "CHARACTERS", characters)
        monkeypatch.setattr(ngrams, "MERGE", 2)
        backend, counts = counted(min_texts)
        expected = [oracle.fit_transform(TEXTS_NGRAMS).sum(0).A1 for oracle in oracles(min_df=min_texts)]
        assert [len(backend.words), len(backend.characters)] == [len(one) for one in expected]
        assert counts[0] == len(TEXTS_NGRAMS)
        assert sorted(counts[1:].tolist()) == sorted(np.concatenate(expected).tolist())


def test_tokens_of_texts_are_those_of_scikit_learn() -> None:
    backend, _ = counted()
    rows = [oracle.fit_transform(TEXTS_NGRAMS).sum(1).A1 for oracle in oracles()]
    encodings = backend.encode_texts(TEXTS_NGRAMS)
    assert [len(encoding.ids) - 1 for encoding in encodings] == (rows[0] + rows[1]).tolist()
    for encoding in encodings:
        assert encoding.ids[0] == 0
        assert len(set(encoding.ids)) == len(encoding.ids)


def test_a_limit_keeps_the_most_frequent() -> None:
    backend, counts = counted(limit=5)
    assert backend.size == 11
    assert counts[1:6].tolist() == [2] * 5


def test_unknown_n_grams_are_left_out() -> None:
    backend, _ = counted()
    assert list(backend.encode_texts(["xyzzy"])[0].ids) == [0]


def test_a_tokenizer_is_written_and_read(tmp_path: Any) -> None:
    tokenizer = Tokenizer(counted()[0])
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.to_json() == tokenizer.to_json()
    assert [list(ids) for ids in again.ids_batch(TEXTS_NGRAMS)] == [
        list(ids) for ids in tokenizer.ids_batch(TEXTS_NGRAMS)
    ]
    assert (again.kind, again.size, again.special) == ("ngrams", tokenizer.size, {})
    assert again.surrounding_ids == ((), ())
    pair = again.encode("the soup", "tea")
    assert pair.segments == pair.sequence_ids
    assert set(pair.segments) == {0, 1}


def test_damaged_files(tmp_path: Any) -> None:
    content = json.loads(Tokenizer(counted()[0]).to_json())
    wrong: tuple[Any, ...] = {**content, "type": "ngram"}, {**content, "word_hashes": "%"}, {"type": "ngrams"}, []
    unsorted = {**content, "word_hashes": ngrams._to_text(np.array([3, 1], np.uint64))}
    for damaged in (*wrong, unsorted):
        (tmp_path / "features.json").write_text(json.dumps(damaged))
        with pytest.raises(FolderError, match=r"features\.json"):
            Tokenizer.load(tmp_path)


# Features of words as tokens.


TEXTS_WORDS = ["Anna met U.N. officials in New-York.", "", "in 2024"]


def test_shapes() -> None:
    assert word_shape("McDonald-99a") == "XxXxxxxx-ddx"
    assert collapsed(word_shape("McDonald-99a")) == "XxXx-dx"
    assert word_shape("é中") == "xx"


@pytest.mark.parametrize("word", ["a", "New-York", "internationalization", "."])
def test_every_word_has_as_many_features(word: str) -> None:
    names = word_features(word)
    assert len(names) == FEATURES
    assert len(set(names)) == FEATURES


def test_tokens_have_the_offsets_of_their_words() -> None:
    backend = WordFeatures.learn(TEXTS_WORDS)
    first, empty, last = backend.encode_texts(TEXTS_WORDS)
    spans = first.offsets[::FEATURES]
    assert [TEXTS_WORDS[0][start:end] for start, end in spans] == [
        "Anna",
        "met",
        "U.N",
        ".",
        "officials",
        "in",
        "New-York",
        ".",
    ]
    assert list(empty.ids) == [0] * FEATURES
    assert len(last.ids) == 2 * FEATURES
    assert 0 not in first.ids
    assert list(first.ids[5 * FEATURES : 6 * FEATURES]) == list(last.ids[:FEATURES])


def test_rare_features_are_left_out() -> None:
    assert "w in" in WordFeatures.learn(TEXTS_WORDS, min_count=2).names
    assert "w Anna" not in WordFeatures.learn(TEXTS_WORDS, min_count=2).names


def test_few_words_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MAX_WORDS", 2)
    backend, other = WordFeatures.learn(TEXTS_WORDS), WordFeatures.learn(TEXTS_WORDS)
    assert backend.encode_texts(TEXTS_WORDS)[0].ids == other.encode_texts(TEXTS_WORDS[:1])[0].ids


def test_a_tokenizer_of_words_is_written_and_read(tmp_path: Path) -> None:
    tokenizer = Tokenizer(WordFeatures.learn(TEXTS_WORDS))
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.encode(TEXTS_WORDS[0]).ids == tokenizer.encode(TEXTS_WORDS[0]).ids
    (tmp_path / "features.json").write_text('{"type": "words", "features": [1]}')
    with pytest.raises(FolderError, match="damaged"):
        Tokenizer.load(tmp_path)


# What tokenizers of features share with those of the `tokenizers` library.


def test_a_pair_has_two_segments() -> None:
    first = FeatureEncoding(array("i", [1, 2]), [(0, 3)] * 2)
    both = first.followed_by(FeatureEncoding(array("i", [2]), [(0, 1)]))
    assert list(both.ids) == [1, 2, 2]
    assert list(both.sequence_ids) == [0, 0, 1]
    assert list(both.special_tokens_mask) == [0, 0, 0]


def test_there_are_no_special_tokens_and_no_names() -> None:
    tokenizer = Tokenizer(WordFeatures.learn(["warm soup"]))
    assert tokenizer.special == {}
    assert tokenizer.short_text
    assert len(tokenizer.ids_batch(["a b"])[0]) == 2 * FEATURES
    with pytest.raises(InputError, match="has the id 1"):
        tokenizer.decode([1])


def test_a_backend_must_be_implemented() -> None:
    backend = FeatureBackend()
    with pytest.raises(NotImplementedError):
        backend.encode_texts(["a"])
    with pytest.raises(NotImplementedError):
        backend.get_vocab_size()
    with pytest.raises(NotImplementedError):
        backend.to_str()


# A kind of features is added in one place.


def test_kinds_are_read_by_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "features.json"
    file.write_text(json.dumps({"type": "reversed", "features": ["a"]}))
    with pytest.raises(FolderError, match='"reversed" is not known'):
        read_features(file)
    monkeypatch.setitem(KINDS, "reversed", WordFeatures.from_settings)
    assert read_features(file).size == 2
