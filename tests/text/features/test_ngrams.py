"""N-grams as tokens: the vocabulary and its document frequencies are those of scikit-learn."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from tests.text.features.test_hashes import WORD

from regard.errors import FolderError
from regard.text.features import ngrams
from regard.text.features.ngrams import NgramCounter, NgramRanges, Ngrams
from regard.text.tokenizer import Tokenizer

TEXTS = ["The soup was warm, warm!", "Nobody's tea", "", "the tea was cold; the soup too", "la café était là"]


def counted(min_texts: int = 1, limit: int = 10**6) -> tuple[Ngrams, Any]:
    counter = NgramCounter(NgramRanges())
    counter.add(TEXTS)
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
        expected = [oracle.fit_transform(TEXTS).sum(0).A1 for oracle in oracles(min_df=min_texts)]
        assert [len(backend.words), len(backend.characters)] == [len(one) for one in expected]
        assert counts[0] == len(TEXTS)
        assert sorted(counts[1:].tolist()) == sorted(np.concatenate(expected).tolist())


def test_tokens_of_texts_are_those_of_scikit_learn() -> None:
    backend, _ = counted()
    rows = [oracle.fit_transform(TEXTS).sum(1).A1 for oracle in oracles()]
    encodings = backend.encode_texts(TEXTS)
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
    assert [list(ids) for ids in again.ids_batch(TEXTS)] == [list(ids) for ids in tokenizer.ids_batch(TEXTS)]
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
