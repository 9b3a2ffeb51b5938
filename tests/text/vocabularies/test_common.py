"""Training on counted words, and the smallest possible vocabulary."""

from __future__ import annotations

import pytest
from tests.text.corpus import CORPUS, train_on_corpus

from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.vocabularies import common


def test_scaled_counts_give_a_similar_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "MAX_TRAINING_WORDS", 400)
    monkeypatch.setattr(common, "REPETITIONS", 7)
    some = set(train_on_corpus("wordpiece", size=180).backend.get_vocab())
    assert {"market", "apples", "the"} <= some


def test_smallest_possible_size_works() -> None:
    for kind in ("wordpiece", "bpe", "unigram"):
        with pytest.raises(InputError, match="at least") as caught:
            train_tokenizer_from_texts([CORPUS], kind=kind, size=10)
        smallest = int(str(caught.value).split("at least ")[1].split(",")[0])
        assert train_tokenizer_from_texts([CORPUS], kind=kind, size=smallest).size == smallest
