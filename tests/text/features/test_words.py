"""Features of words as tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import FolderError
from regard.text.features import words
from regard.text.features.words import FEATURES, WordFeatures, collapsed, word_features, word_shape
from regard.text.tokenizer import Tokenizer

TEXTS = ["Anna met U.N. officials in New-York.", "", "in 2024"]


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
    backend = WordFeatures.learn(TEXTS)
    first, empty, last = backend.encode_texts(TEXTS)
    spans = first.offsets[::FEATURES]
    assert [TEXTS[0][start:end] for start, end in spans] == [
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
    assert "w in" in WordFeatures.learn(TEXTS, min_count=2).names
    assert "w Anna" not in WordFeatures.learn(TEXTS, min_count=2).names


def test_few_words_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MAX_WORDS", 2)
    backend, other = WordFeatures.learn(TEXTS), WordFeatures.learn(TEXTS)
    assert backend.encode_texts(TEXTS)[0].ids == other.encode_texts(TEXTS[:1])[0].ids


def test_a_tokenizer_is_written_and_read(tmp_path: Path) -> None:
    tokenizer = Tokenizer(WordFeatures.learn(TEXTS))
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.encode(TEXTS[0]).ids == tokenizer.encode(TEXTS[0]).ids
    (tmp_path / "features.json").write_text('{"type": "words", "features": [1]}')
    with pytest.raises(FolderError, match="damaged"):
        Tokenizer.load(tmp_path)
