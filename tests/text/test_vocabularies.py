"""Vocabularies of every kind, each with what is special about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.references import transformers
from tests.text.corpus import CORPUS, train_on_corpus, trained
from tests.text.corpus import TEXTS as TEXTS_BPE

from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_report import tokenizer_report
from regard.text.vocabularies import common
from regard.text.vocabularies.characters import learn
from regard.text.vocabularies.common import NoText, VocabularySettings, VocabularyTooSmall
from regard.text.vocabularies.unigram import reproducible_order

# Training on counted words, and the smallest possible vocabulary.


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


# Character vocabularies: one token per character, the most frequent characters.


def settings(size: int = 100, alphabet: int = 1000, *, lowercase: bool = False) -> VocabularySettings:
    return VocabularySettings("char", size, lowercase, alphabet, 1000)


def test_every_character_is_a_token() -> None:
    tokenizer = learn(["Ab ab", "b"], settings())
    assert tokenizer.size == 5 + 4
    assert tokenizer.decode(tokenizer.encode("b A").ids) == "b A"


def test_lowercase_and_alphabet() -> None:
    assert learn(["AaBb"], settings(lowercase=True)).size == 5 + 2
    rare = learn(["aaab"], settings(alphabet=1))
    assert rare.encode("b", special=False).ids == (rare.unk,)


def test_no_text_and_small_size() -> None:
    with pytest.raises(NoText):
        learn([" \n"], settings())
    with pytest.raises(VocabularyTooSmall, match="size 5 is too small") as error:
        learn(["a"], settings(size=5))
    assert error.value.needed == 6


# Vocabularies of whole words: one token per word, the most frequent words.


TEXTS = ["the man fed the dog.", "the woman fed the cat."]


def test_every_word_is_a_token() -> None:
    tokenizer = train_tokenizer_from_texts(TEXTS, kind="word")
    assert tokenizer.size == 5 + 7
    ids = tokenizer.encode("the woman fed the dog", special=False).ids
    assert tokenizer.decode(ids) == "the woman fed the dog"
    assert len(ids) == 5
    assert ids[0] == ids[3] == 5  # the most frequent word comes after the special tokens
    assert tokenizer.encode("The horse", special=False).ids == (tokenizer.unk, tokenizer.unk)
    assert tokenizer_report(tokenizer, TEXTS).kind == "word"


def test_rare_words_are_unknown() -> None:
    tokenizer = train_tokenizer_from_texts(TEXTS, kind="word", size=7)
    assert tokenizer.encode("the fed dog", special=False).ids.count(tokenizer.unk) == 2


# WordPiece vocabularies.


def test_frequent_words_are_tokens() -> None:
    assert {"market", "apples", "the"} <= set(trained("wordpiece").backend.get_vocab())
    assert {"Ġmarket", "Ġthe"} <= set(trained("bpe").backend.get_vocab())
    assert {"▁the", "▁Monday"} <= set(trained("unigram").backend.get_vocab())


def test_rare_characters_are_unknown() -> None:
    result = train_tokenizer_from_texts([CORPUS], size=90, alphabet=30)
    assert result.unk in result.encode("東京").ids
    assert result.unk not in result.encode("the market").ids


# Byte-level BPE with the special tokens of GPT-2, T5, RoBERTa and BERT.


@pytest.mark.parametrize(
    ("name", "special", "pair"),
    [
        ("roberta", {"bos": 0, "cls": 0, "pad": 1, "eos": 2, "sep": 2, "unk": 3, "mask": 4}, [0, 2, 2, 2]),
        ("bert", {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}, [2, 3, 3]),
    ],
)
def test_bpe_with_a_mask_token(tmp_path: Path, name: str, special: dict[str, int], pair: list[int]) -> None:
    ours = train_on_corpus("bpe", special_tokens=name)
    assert ours.special == special
    assert [token for token in ours.encode("the market", "the").ids if token < 5] == pair
    mask = "<mask>" if name == "roberta" else "[MASK]"
    assert special["mask"] in ours.encode(f"the {mask}").ids
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS_BPE:
        assert theirs(text)["input_ids"] == list(ours.encode(text).ids)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)
        assert Tokenizer.load(tmp_path).encode(text) == ours.encode(text)


def test_bpe_with_an_end_token(tmp_path: Path) -> None:
    ours = train_on_corpus("bpe", special_tokens="t5")
    assert ours.special == {"pad": 0, "eos": 1, "unk": 2}
    assert ours.surrounding_ids == ((), (1,))
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS_BPE:
        assert theirs(text)["input_ids"] == list(ours.encode(text).ids)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)


# Unigram vocabularies: probable tokens, in an order that does not depend on hash tables.


def test_texts_end_with_a_special_token() -> None:
    tokenizer = trained("unigram")
    encoding = tokenizer.encode("the market", "the apples")
    assert encoding.ids.count(tokenizer.eos) == 2
    assert tokenizer.decode(encoding.ids[:-1]).startswith("the market")


def test_scores_are_rounded_and_sorted() -> None:
    pairs = [("<pad>", 0.0), ("b", -5.00004), ("the", -1.00000049), ("a", -5.0001), ("of", -1.0)]
    assert reproducible_order(pairs, ["<pad>"]) == [
        ("<pad>", 0.0),
        ("of", -1.0),
        ("the", -1.0),
        ("a", -5.0001),
        ("b", -5.0001),
    ]
