"""BPE dropout: plain BPE without it, and the distribution of the method as the paper describes it."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from regard.errors import InputError
from regard.text.bpe_dropout import CONTINUES, BpeMerges, MarkingTokenizer
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

TEXTS = ["the lower tower is slower than the newer tower", "lowest and newest, widest and slowest"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    with pytest.warns(UserWarning, match="the text gives"):
        return train_tokenizer_from_texts(TEXTS, kind="bpe", size=400, special_tokens="roberta")


def merged(merges: BpeMerges, words: list[list[int]], dropout: float, seed: int = 0) -> list[list[int]]:
    ids = np.full((len(words), max(map(len, words)) + 1), merges.padding)
    for row, word in enumerate(words):
        ids[row, : len(word)] = word
    merges.merge(ids, dropout, np.random.default_rng(seed))
    return [[number for number in row if number != merges.padding] for row in ids.tolist()]


def by_the_paper(names: list[str], ranks: dict[tuple[str, str], int], dropout: float) -> list[str]:
    """Algorithm 1 of Provilkov et al., for a single word."""
    while True:
        pairs = [(ranks[pair], place) for place, pair in enumerate(itertools.pairwise(names)) if pair in ranks]
        pairs = [pair for pair in pairs if random.random() >= dropout]
        if not pairs:
            return names
        place = min(pairs)[1]
        names = [*names[:place], names[place] + names[place + 1], *names[place + 2 :]]


def test_marks_of_tokens_that_continue_a_word(tokenizer: Tokenizer) -> None:
    (marked,) = MarkingTokenizer.of(tokenizer).ids_batch(["xylower xy"])
    assert [number % CONTINUES for number in marked] == tokenizer.ids_batch(["xylower xy"])[0]
    names = [tokenizer.backend.id_to_token(number % CONTINUES) for number in marked]
    starts = [name for name, number in zip(names, marked, strict=True) if number < CONTINUES]
    assert starts == ["<s>", "x", "Ġ", "</s>"]


def test_without_dropout_it_is_bpe(tokenizer: Tokenizer) -> None:
    merges = BpeMerges.of(tokenizer)
    words = tokenizer.ids_batch(["lower", "slowest", "xyz", "é", "tower"], special=False)
    characters = [merges.characters(word) for word in words]
    assert merged(merges, [word for word in characters if word is not None], 0.0) == words


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_segmentations_are_as_frequent_as_in_the_paper(tokenizer: Tokenizer, dropout: float) -> None:
    merges, count = BpeMerges.of(tokenizer), 4000
    (word,) = tokenizer.ids_batch(["slower"], special=False)
    characters = merges.characters(word)
    assert characters is not None
    ours = Counter(tuple(one) for one in merged(merges, [characters] * count, dropout))
    width = merges.padding + 1
    pairs = {
        (merges.names[key // width], merges.names[key % width]): rank
        for key, rank in zip(merges.keys.tolist(), merges.ranks.tolist(), strict=True)
    }
    random.seed(0)
    names = [merges.names[number] for number in characters]
    known = {name: number for number, name in enumerate(merges.names)}
    theirs = Counter(tuple(known[name] for name in by_the_paper(names, pairs, dropout)) for _ in range(count))
    assert len(ours) > 3
    for split in ours | theirs:
        assert ours[split] / count == pytest.approx(theirs[split] / count, abs=0.04)


def test_the_same_seed_gives_the_same_tokens(tokenizer: Tokenizer) -> None:
    merges = BpeMerges.of(tokenizer)
    words = [merges.characters(word) or [] for word in tokenizer.ids_batch(TEXTS[0].split(), special=False)]
    assert merged(merges, words, 0.5, 1) == merged(merges, words, 0.5, 1) != merged(merges, words, 0.5, 2)


def test_words_with_unknown_tokens_have_no_characters(tokenizer: Tokenizer) -> None:
    merges = BpeMerges.of(tokenizer)
    assert merges.characters([merges.padding]) is None


def test_other_vocabularies_are_refused() -> None:
    with pytest.warns(UserWarning, match="the text gives"):
        unigram = train_tokenizer_from_texts(TEXTS, kind="unigram", size=400)
    with pytest.raises(InputError, match="bpe_dropout needs a BPE vocabulary, but this one is unigram"):
        BpeMerges.of(unigram)
