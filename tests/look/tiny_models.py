"""Tiny random models of every kind, with a tokenizer of whole words and parts of words."""

from __future__ import annotations

from typing import Any

import tokenizers
from tests.predict.models import random_checkpoint

from regard.predict.model import Model
from regard.text.tokenizer import Tokenizer

WORDS = [
    "the",
    "a",
    "cook",
    "who",
    "burned",
    "soup",
    "opened",
    "window",
    "film",
    "was",
    "warm",
    "dull",
    "and",
    "good",
    "bad",
    "not",
    "river",
    "bank",
    "money",
    "of",
    "with",
    "##",
    "s",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = "the cook who burned the soup opened windows"
CONTEXT = "the bank of the river was warm and good"


def tokenizer(*, special: bool = True) -> Tokenizer:
    """WordPiece over a few words; letters for all others."""
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    names = [*SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {name: number for number, name in enumerate(dict.fromkeys(names))}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = tokenizers.normalizers.Lowercase()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    backend.decoder = tokenizers.decoders.WordPiece()
    backend.add_special_tokens(SPECIAL)
    if special:
        backend.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    roles = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return Tokenizer(backend, tokens=roles)


def model(name: str, heads: dict[str, int] | None = None, *, max_tokens: int | None = None) -> Any:
    """A tiny preset with random weights and these heads."""
    checkpoint = random_checkpoint(name, heads, longest=max_tokens)
    labels = None
    for head in ("sequence", "token"):
        if heads and head in heads:
            labels = ("O", "B-PER", "I-PER") if head == "token" else tuple(f"c{i}" for i in range(heads[head]))
    object.__setattr__(checkpoint, "labels", labels)
    return Model(checkpoint, tokenizer(special=name not in ("tiny-gpt2", "tiny-llama")))


KINDS: dict[str, tuple[str, dict[str, int] | None, str | None]] = {
    "bert": ("tiny-bert", {"sequence": 3}, None),
    "bert-pair": ("tiny-bert", {"sequence": 2}, CONTEXT),
    "roberta": ("tiny-roberta", {"sequence": 2}, None),
    "distilbert": ("tiny-distilbert", {"sequence": 2}, None),
    "albert": ("tiny-albert", {"sequence": 2}, None),
    "electra": ("tiny-electra", {"sequence": 2}, None),
    "modernbert": ("tiny-modernbert", {"sequence": 2}, None),
    "tagger": ("tiny-bert", {"token": 3}, None),
    "reader": ("tiny-bert", {"span": 2}, CONTEXT),
    "masked": ("tiny-bert", {"masked": 0}, None),
    "vectors": ("tiny-bert", {}, None),
    "similarity": ("tiny-bert", {}, CONTEXT),
    "gpt2": ("tiny-gpt2", None, None),
    "llama": ("tiny-llama", None, None),
    "marian": ("tiny-marian", None, None),
    "pegasus": ("tiny-pegasus", None, None),
    "t5": ("tiny-t5", None, None),
    "transformer": ("tiny-transformer", None, None),
    "gru": ("tiny-gru", None, None),
    "lstm-feeding": ("tiny-lstm-feeding", None, None),
    "lstm-language": ("tiny-lstm-language", None, None),
}


def text_for(kind: str) -> str:
    """A text that the kind of model can explain."""
    return TEXT.replace("soup", "[MASK]") if kind == "masked" else TEXT
