from __future__ import annotations

from tests.serve.helpers import TEXTS, client_of, table_of, tiny

from regard.errors import InputError
from regard.serve.operations.tokenizing import tokenized


def test_tokens_have_offsets_in_code_points() -> None:
    result = tokenized(tiny("bert"), "the 🍲 soup", special=True)
    assert result["tokens"][0] == "[CLS]"
    assert result["offsets"][result["tokens"].index("soup")] == [6, 10]
    assert tokenized(tiny("bert"), "the soup", special=False)["tokens"] == ["the", "soup"]


def test_tokens_need_no_model_and_obey_the_limits() -> None:
    with table_of("bert", max_text_tokens=100) as table:
        first, wrong = table.get(None).submit("tokenize", [TEXTS[0], 5], {"special": False})
        assert first.result(10).answer == tokenized(tiny("bert"), TEXTS[0], special=False)
        assert isinstance(wrong.exception(10), InputError)
    with client_of("bert", max_text_tokens=100, max_texts=2) as client:
        assert client.post("/tokenize", json={"text": ""}).json()["answers"][0]["tokens"] == ["[CLS]", "[SEP]"]
        assert client.post("/tokenize", json={"text": "soup " * 200}).status_code == 413
        assert client.post("/tokenize", json={"texts": ["soup"] * 3}).status_code == 413
