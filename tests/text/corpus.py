"""A small corpus, and tokenizers trained on it."""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import strategies as st

from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

SENTENCES = [
    "The old man went to the market on Monday, and bought five apples.",
    "Nobody at the market had ever seen such apples; they were as big as melons!",
    'He said: "I shall plant the seeds behind my house, near the café."',
    "Years later there stood an orchard, and every Monday people came to buy.",
    "Ein Bär saß über dem Fluß. 東京 は 大きい。 Привет, мир!",
]

CORPUS = "\n".join(SENTENCES * 4) + "\n\n" + "\n".join(SENTENCES[:4] * 6)

SIZES = {"wordpiece": 200, "bpe": 420, "unigram": 90, "char": 62, "word": 90}

TEXTS = [
    *SENTENCES,
    "",
    " \t\n ",
    "apples [MASK] <|endoftext|> </s> naïve 😀 zzz e\u0301",
    "a\u200bb \u00a0the  market",
]

OPEN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)

NEAR_TEXT = st.lists(st.sampled_from([*CORPUS.split(), " ", "\n", "é", "É", "ﬁ", "İ", "▁", "Ġ", "##s"]), max_size=8)


def train_on_corpus(kind: str, **changes: Any) -> Tokenizer:
    """A tokenizer trained on CORPUS."""
    return train_tokenizer_from_texts([CORPUS], **{"kind": kind, "size": SIZES[kind], **changes})


@functools.cache
def trained(kind: str) -> Tokenizer:
    """The tokenizer of this kind, trained once for all tests."""
    return train_on_corpus(kind)
