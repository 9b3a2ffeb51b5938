from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.serve.helpers import TEXTS, table_of, tiny

from regard.errors import InputError
from regard.serve.operations.text_by_text import tokenized

MASKED = "the cook [MASK] the soup and <mask>"


def answer(kind: str, operation: str, text: str, **options: Any) -> dict[str, Any]:
    with table_of(kind) as table:
        served = table.get(kind)
        (future,) = served.worker.submit(served.operation(operation, **options), [text])
        return future.result(20).answer


def test_filled_words_are_those_of_fill() -> None:
    expected = [[dataclasses.asdict(word) for word in words] for words in tiny("masked").fill(MASKED, top=3)]
    assert answer("masked", "fill", MASKED, top=3) == {"masks": expected, "truncated": False, "windows": 1}
    with pytest.raises(InputError, match="there is no \\[MASK\\]"):
        answer("masked", "fill", "no mask")


def test_translations_are_those_of_translate() -> None:
    result = answer("t5", "translate", TEXTS[0], beams=2, best=2)
    expected = tiny("t5").translations([TEXTS[0]], beams=2, best=2)[0]
    assert [one["translation"] for one in result["candidates"]] == [one.translation for one in expected]
    assert result["score"] == expected[0].score
    assert result["windows"] == 1


def test_generated_text_is_that_of_generate() -> None:
    result = answer("gpt2", "generate", TEXTS[0], max_tokens=8, top_p=0.9, seed=3)
    assert result["text"] == tiny("gpt2").generate(TEXTS[0], max_tokens=8, top_p=0.9, seed=3)
    assert result["finish_reason"] == "length"
    assert result["new_tokens"] == 8
    assert (result["truncated"], result["windows"]) == (False, 1)


def test_tokens_have_offsets_in_code_points() -> None:
    result = tokenized(tiny("bert"), "the 🍲 soup", special=True)
    assert result["tokens"][0] == "[CLS]"
    assert result["offsets"][result["tokens"].index("soup")] == [6, 10]
    assert tokenized(tiny("bert"), "the soup", special=False)["tokens"] == ["the", "soup"]


def test_explanations_are_those_of_explain() -> None:
    result = answer("bert", "explain", TEXTS[0])
    expected = tiny("bert").explain(TEXTS[0]).json()
    assert json.loads(json.dumps(result))["words"] == json.loads(json.dumps(expected))["words"]
    assert (result["truncated"], result["windows"]) == (False, 1)
    with pytest.raises(InputError, match="not known"):
        answer("bert", "explain", TEXTS[0], method="guess")
