"""Fields of an encoding are computed on first use."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from tests.text.vocabulary_files import (
    tiny_tokenizer,
)

from regard.text.encoding import Encoding


def test_lazy_fields_equal_given_fields() -> None:
    one, other = tiny_tokenizer().encode("the man", "went"), tiny_tokenizer().encode("the man", "went")
    names = [field.name for field in fields(Encoding)]
    plain = Encoding(**{name: getattr(one, name) for name in names})
    assert one == other == plain
    assert hash(one) == hash(plain)
    assert repr(tiny_tokenizer().encode("the man", "went")) == repr(plain)
    encoding = tiny_tokenizer().encode("the man", "went")
    assert pickle.loads(pickle.dumps(encoding)) == copy.deepcopy(encoding) == plain
    assert replace(tiny_tokenizer().encode("the man", "went"), ids=(1,)) == replace(plain, ids=(1,))
    with pytest.raises(AttributeError, match="no attribute 'idz'"):
        one.idz  # noqa: B018  (the lookup is the test)
    with pytest.raises(FrozenInstanceError):
        one.ids = ()  # type: ignore[misc]  # the point of the test
