from __future__ import annotations

from typing import Any

import pytest
from tests.answers import assert_same
from tests.serve.helpers import CONTEXT, TEXTS, table_of, tiny


def answers(kind: str, items: list[Any], **options: Any) -> list[dict[str, Any]]:
    with table_of(kind) as table:
        served = table.get(kind)
        futures = served.submit("predict", items, options)
        return [future.result(20).answer for future in futures]


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "albert", "electra", "tagger"])
def test_batched_answers_are_those_of_predict(kind: str) -> None:
    results = answers(kind, TEXTS)
    assert_same(results, [answer.json() for answer in tiny(kind).predict(TEXTS)])
    assert_same(results, [tiny(kind).predict([text])[0].json() for text in TEXTS])
    assert all(answer["truncated"] is False for answer in results)


def test_long_texts_are_split_into_windows() -> None:
    assert max(answer["windows"] for answer in answers("bert", TEXTS)) > 3


@pytest.mark.parametrize("kind", ["t5", "marian", "gru"])
def test_networks_that_generate_answer_text_by_text(kind: str) -> None:
    texts = TEXTS[:3]
    assert answers(kind, texts) == [tiny(kind).predict([text])[0].json() for text in texts]


@pytest.mark.parametrize("pair", [["a good film", CONTEXT], {"first": "a good film", "second": CONTEXT}])
def test_pairs(pair: Any) -> None:
    expected = tiny("bert-pair").predict([("a good film", CONTEXT)])[0].json()
    assert answers("bert-pair", [pair, pair]) == [expected, expected]


def test_questions_and_words() -> None:
    expected = tiny("reader").predict([("who opened", CONTEXT)])[0].json()
    assert (
        answers("reader", [{"question": "who opened", "context": CONTEXT}, ["who opened", CONTEXT]]) == [expected] * 2
    )
    words = ["the", "cook", "opened"]
    assert answers("tagger", [words]) == [tiny("tagger").predict([words])[0].json()]


def test_abstention() -> None:
    assert answers("bert", TEXTS[:1], abstain=1.0)[0]["abstained"] is True
