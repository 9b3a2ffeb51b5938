from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pytest
from tests.serve.helpers import TEXTS, table_of, tiny, until

from regard.errors import InputError
from regard.serve.served_model import ServedModel

MASKED = "the cook [MASK] the soup and <mask>"


def answer(kind: str, operation: str, text: str, **options: Any) -> dict[str, Any]:
    with table_of(kind) as table:
        served = table.get(kind)
        (future,) = served.submit(operation, [text], options)
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


def test_generation_ends_when_its_client_has_left() -> None:
    with table_of("gpt2", batch_tokens=100_000, max_text_tokens=1_000_000) as table:
        served = table.get(None)
        assert isinstance(served, ServedModel)
        batcher = served.worker.batcher
        (long,) = served.submit("generate", [TEXTS[0]], {"max_tokens": 90_000, "min_tokens": 90_000, "slide": True})
        until(lambda: batcher.running_tokens > 0)
        started = time.monotonic()
        assert long.cancel()
        assert served.submit("generate", [TEXTS[0]], {"max_tokens": 4})[0].result(20).answer["new_tokens"] <= 4
        assert time.monotonic() - started < 10
        assert batcher.running_tokens == 0


def test_explanations_are_those_of_explain() -> None:
    result = answer("bert", "explain", TEXTS[0])
    expected = tiny("bert").explain(TEXTS[0]).json()
    assert json.loads(json.dumps(result))["words"] == json.loads(json.dumps(expected))["words"]
    assert (result["truncated"], result["windows"]) == (False, 1)
    with pytest.raises(InputError, match="not known"):
        answer("bert", "explain", TEXTS[0], method="guess")
    for texts in ([], [*TEXTS[:2], TEXTS[0]]):
        with pytest.raises(InputError, match=f"input 0 has {len(texts)} texts, expected one or two"):
            answer("bert", "explain", texts)  # type: ignore[arg-type]  # as a request can have it
