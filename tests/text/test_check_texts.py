"""Texts that cannot be encoded are named in the error."""

from __future__ import annotations

from typing import Any

import pytest
from tests.text.vocabulary_files import (
    tiny_tokenizer,
)
from tokenizers import Tokenizer as Backend
from tokenizers import models

from regard.errors import InputError
from regard.text.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", 3], "text 1 is of type int"),
        ([None], "text 0 is of type NoneType.*empty rows"),
        ([b"bytes"], "text 0 is of type bytes.*Decode it first"),
        (["fine", "a\ud83d"], r"text 1 has half of a surrogate pair \(U\+D83D\) at character 1"),
        ("one text", "Put it into a list"),
    ],
)
def test_value_that_is_not_a_text(texts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny_tokenizer().encode_batch(texts)


def test_suggested_fix_for_surrogates_works() -> None:
    broken = "\ud83d\ude00 and \ud83d"
    with pytest.raises(InputError, match="surrogatepass"):
        tiny_tokenizer().encode(broken)
    assert broken.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "😀 and \ufffd"


@pytest.mark.parametrize(
    "model", [models.WordLevel({"a": 0}, unk_token="[UNK]"), models.Unigram([("a", -1.0)]), models.WordPiece({"a": 0})]
)
def test_text_outside_a_vocabulary_without_unknown_token(model: models.Model) -> None:
    bare = Tokenizer(Backend(model))
    assert bare.encode_batch(["a"])[0].ids == (0,)
    with pytest.raises(InputError, match=r'text 1 \("zz"\) has a part.*unk_token.*regard tokenizer'):
        bare.encode_batch(["a", "zz", "yy"])
    with pytest.raises(InputError, match=r'pair 0 \("a"\)'):
        bare.encode_batch(["a"], ["zz"])
    with pytest.raises(InputError, match=r'the text \("zz"\)'):
        bare.encode("zz")
