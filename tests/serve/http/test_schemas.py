from __future__ import annotations

import pytest

from regard.errors import InputError
from regard.generate.settings import DEFAULTS
from regard.serve.http.schemas import AnswerBody, DecodingFields, GenerateBody, one_or_many


def test_one_or_many() -> None:
    assert one_or_many("text", "a", "texts", None) == ["a"]
    assert one_or_many("text", None, "texts", ["a", "b"]) == ["a", "b"]
    for one, many in ((None, None), ("a", ["b"]), (None, [])):
        with pytest.raises(InputError):
            one_or_many("text", one, "texts", many)


def test_decoding_settings_are_those_of_generate() -> None:
    sent = DecodingFields(max_tokens=3, top_p=1).decoding()
    assert sent == {"max_tokens": 3, "top_p": 1.0}
    names = GenerateBody.model_fields.keys() - {"model", "on_error", "prompt", "prompts", "stream"}
    assert DEFAULTS.keys() - names == {"early_stop", "constraint"}
    assert names <= DEFAULTS.keys()


def test_questions() -> None:
    body = AnswerBody(question="a", context="b")
    assert body.items() == [{"question": "a", "context": "b"}]
