"""Byte-level BPE with the special tokens of GPT-2, T5, RoBERTa and BERT."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.references import transformers
from tests.text.corpus import TEXTS, train_on_corpus

from regard.text.tokenizer import Tokenizer


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
    for text in TEXTS:
        assert theirs(text)["input_ids"] == list(ours.encode(text).ids)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)
        assert Tokenizer.load(tmp_path).encode(text) == ours.encode(text)


def test_bpe_with_an_end_token(tmp_path: Path) -> None:
    ours = train_on_corpus("bpe", special_tokens="t5")
    assert ours.special == {"pad": 0, "eos": 1, "unk": 2}
    assert ours.surrounding_ids == ((), (1,))
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert theirs(text)["input_ids"] == list(ours.encode(text).ids)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)
