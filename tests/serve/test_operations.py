"""Every operation gives what the method of `Model` gives, bit for bit, whatever runs in the same batch."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from tests.answers import assert_same
from tests.serve.helpers import CONTEXT, TEXTS, table_of, tiny, until

from regard.errors import InputError
from regard.serve.operations.operation import Operation
from regard.serve.operations.registry import OPERATIONS, operation_class
from regard.serve.operations.tokenizing import tokenized
from regard.serve.served import KINDS
from regard.serve.served_model import ServedModel

MASKED = "the cook [MASK] the soup and <mask>"
QUESTION = ("who opened", CONTEXT)
CAN = {
    "bert": {"predict", "embed"},
    "tagger": {"predict", "embed"},
    "reader": {"predict", "embed", "answer"},
    "masked": {"embed", "fill"},
    "gpt2": {"embed", "generate"},
    "t5": {"predict", "embed", "translate", "generate"},
    "gru": {"predict", "translate", "generate"},
}


def answers(kind: str, operation: str, items: list[Any], **options: Any) -> list[dict[str, Any]]:
    with table_of(kind) as table:
        futures = table.get(kind).submit(operation, items, options)
        return [future.result(20).answer for future in futures]


def predicted(kind: str, texts: list[Any]) -> list[dict[str, Any]]:
    return [answer.json() for answer in tiny(kind).predict(texts)]


def test_every_kind_has_a_class() -> None:
    assert tuple(OPERATIONS) == KINDS
    assert all(issubclass(operation_class(kind), Operation) for kind in KINDS)  # type: ignore[arg-type]


def test_a_server_of_vectors_starts_without_the_tasks() -> None:
    code = (
        "import sys, regard.serve.served_model, regard.serve.operations.embedding; print('regard.tasks' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("kind", CAN)
def test_each_model_has_its_operations(kind: str) -> None:
    with table_of(kind) as table:
        served = table.get(kind)
        assert isinstance(served, ServedModel)
        for name in OPERATIONS:
            if name in CAN[kind] or name in ("explain", "tokenize"):
                assert served.operation(name) is served.operation(name)
            else:
                with pytest.raises(InputError):
                    served.operation(name)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "albert", "electra", "tagger"])
def test_batched_answers_are_those_of_predict(kind: str) -> None:
    results = answers(kind, "predict", TEXTS)
    assert_same(results, predicted(kind, TEXTS))
    assert_same(results, [predicted(kind, [text])[0] for text in TEXTS])
    assert all(answer["truncated"] is False for answer in results)
    if kind == "bert":
        assert max(answer["windows"] for answer in results) > 3


@pytest.mark.parametrize("kind", ["t5", "marian", "gru"])
def test_networks_that_generate_answer_text_by_text(kind: str) -> None:
    assert answers(kind, "predict", TEXTS[:3]) == [predicted(kind, [text])[0] for text in TEXTS[:3]]


@pytest.mark.parametrize(
    ("kind", "item", "same"),
    [
        ("bert-pair", ["a good film", CONTEXT], ("a good film", CONTEXT)),
        ("bert-pair", {"first": "a good film", "second": CONTEXT}, ("a good film", CONTEXT)),
        ("reader", {"question": QUESTION[0], "context": CONTEXT}, QUESTION),
        ("reader", list(QUESTION), QUESTION),
        ("tagger", ["the", "cook", "opened"], ["the", "cook", "opened"]),
    ],
)
def test_pairs_questions_and_words(kind: str, item: Any, same: Any) -> None:
    assert answers(kind, "predict", [item, item]) == predicted(kind, [same]) * 2


def test_abstention() -> None:
    assert answers("bert", "predict", TEXTS[:1], abstain=1.0)[0]["abstained"] is True


def test_a_failing_item_does_not_fail_the_others() -> None:
    with table_of("bert") as table:
        good, empty, wrong = table.get(None).submit("predict", [TEXTS[0], " ", {"x": "y"}], {})
        assert good.result(10).answer == predicted("bert", [TEXTS[0]])[0]
        assert "empty" in str(empty.exception(10))
        assert "text" in str(wrong.exception(10))


@pytest.mark.parametrize("kind", ["vectors", "modernbert", "gpt2", "t5"])
@pytest.mark.parametrize(
    "options", [{}, {"layer": 1, "pooling": "max"}, {"pooling": "first", "normalize": True}], ids=str
)
def test_vectors_are_those_of_embed(kind: str, options: dict[str, Any]) -> None:
    results = answers(kind, "embed", TEXTS, **options)
    vectors = np.array([answer["embedding"] for answer in results], np.float32)
    np.testing.assert_array_equal(vectors, tiny(kind).embed(TEXTS, **options))
    assert all(answer["truncated"] is False and answer["windows"] >= 1 for answer in results)


def test_filled_words_are_those_of_fill() -> None:
    expected = [[dataclasses.asdict(word) for word in words] for words in tiny("masked").fill(MASKED, top=3)]
    assert answers("masked", "fill", [MASKED], top=3) == [{"masks": expected, "truncated": False, "windows": 1}]


def test_translations_are_those_of_translate() -> None:
    (result,) = answers("t5", "translate", TEXTS[:1], beams=2, best=2)
    expected = tiny("t5").translations([TEXTS[0]], beams=2, best=2)[0]
    assert [one["translation"] for one in result["candidates"]] == [one.translation for one in expected]
    assert (result["score"], result["windows"]) == (expected[0].score, 1)


def test_generated_text_is_that_of_generate() -> None:
    (result,) = answers("gpt2", "generate", TEXTS[:1], max_tokens=8, top_p=0.9, seed=3)
    assert result.pop("score") < 0
    text = tiny("gpt2").generate(TEXTS[0], max_tokens=8, top_p=0.9, seed=3)
    assert result == {"text": text, "finish_reason": "length", "new_tokens": 8, "truncated": False, "windows": 1}


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
    (result,) = answers("bert", "explain", TEXTS[:1])
    expected = tiny("bert").explain(TEXTS[0]).json()
    assert json.loads(json.dumps(result))["words"] == json.loads(json.dumps(expected))["words"]
    assert (result["truncated"], result["windows"]) == (False, 1)


def test_tokens_have_offsets_in_code_points_and_need_no_model() -> None:
    (result,) = answers("bert", "tokenize", ["the 🍲 soup"])
    assert result["tokens"][0] == "[CLS]"
    assert result["offsets"][result["tokens"].index("soup")] == [6, 10]
    assert answers("bert", "tokenize", TEXTS[:1], special=False) == [tokenized(tiny("bert"), TEXTS[0], special=False)]


@pytest.mark.parametrize(
    ("kind", "operation", "item", "options", "message"),
    [
        ("masked", "fill", "no mask", {}, "there is no \\[MASK\\]"),
        ("bert", "explain", TEXTS[0], {"method": "guess"}, "not known"),
        ("bert", "explain", [], {}, "input 0 has 0 texts, expected one or two"),
        ("bert", "explain", TEXTS[:3], {}, "input 0 has 3 texts, expected one or two"),
        ("bert", "tokenize", 5, {}, "is 5"),
    ],
)
def test_errors(kind: str, operation: str, item: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        answers(kind, operation, [item], **options)
