"""Texts that cannot be encoded are named in the error."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models

from regard.errors import InputError
from regard.text.tokenizer import Tokenizer


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
