"""The routes for texts, through HTTP."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.answers import assert_same
from tests.serve.helpers import CONTEXT, TEXTS, client_of, tiny

MASKED = "the cook [MASK] the soup"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with client_of("bert", "tagger", "reader", "masked", "gpt2", "t5", "vectors") as one:
        yield one


def post(client: TestClient, route: str, status: int = 200, **body: Any) -> dict[str, Any]:
    response = client.post(route, json=body)
    assert response.status_code == status, response.text
    values: dict[str, Any] = response.json()
    if status != 200:
        assert values.keys() == {"error", "error_type"}
    return values


def test_answers_are_those_of_predict(client: TestClient) -> None:
    result = post(client, "/predict", texts=TEXTS)
    assert result["model"] == "bert"
    assert_same(result["answers"], [answer.json() for answer in tiny("bert").predict(TEXTS)])
    one = post(client, "/predict", text=TEXTS[0], model="tagger")
    assert_same(one["answers"], [tiny("tagger").predict([TEXTS[0]])[0].json()])
    assert {"truncated", "windows"} <= one["answers"][0].keys()


def test_vectors(client: TestClient) -> None:
    answers = post(client, "/embed", texts=TEXTS, model="vectors")["answers"]
    vectors = np.array([answer["embedding"] for answer in answers], np.float32)
    np.testing.assert_array_equal(vectors, tiny("vectors").embed(TEXTS))


def test_openai_embeddings(client: TestClient) -> None:
    result = post(client, "/v1/embeddings", input=TEXTS[:2], model="vectors")
    expected = tiny("vectors").embed(TEXTS[:2], normalize=True)
    np.testing.assert_array_equal(np.array([row["embedding"] for row in result["data"]], np.float32), expected)
    assert result["object"] == "list"
    assert result["usage"]["total_tokens"] > 10
    assert [row["index"] for row in result["data"]] == [0, 1]
    coded = post(client, "/v1/embeddings", input=TEXTS[0], model="vectors", encoding_format="base64")
    vector = np.frombuffer(base64.b64decode(coded["data"][0]["embedding"]), "<f4")
    np.testing.assert_array_equal(vector, expected[0])


def test_filled_masks_answers_and_tokens(client: TestClient) -> None:
    fill = post(client, "/fill", text=MASKED, model="masked", top=2)["answers"][0]
    assert [word["word"] for word in fill["masks"][0]] == [word.word for word in tiny("masked").fill(MASKED, top=2)[0]]
    answer = post(client, "/answer", question="who opened", context=CONTEXT, model="reader")["answers"]
    assert answer == [tiny("reader").predict([("who opened", CONTEXT)])[0].json()]
    assert (
        answer
        == post(client, "/answer", questions=[{"question": "who opened", "context": CONTEXT}], model="reader")[
            "answers"
        ]
    )
    tokens = post(client, "/tokenize", text="the soup")["answers"][0]
    assert tokens["tokens"] == ["[CLS]", "the", "soup", "[SEP]"]
    assert tokens["offsets"][2] == [4, 8]


def test_translations_and_generation(client: TestClient) -> None:
    translated = post(client, "/translate", text=TEXTS[0], model="t5", beams=2)["answers"][0]
    assert translated["translation"] == tiny("t5").translate([TEXTS[0]], beams=2)[0]
    generated = post(client, "/generate", prompt=TEXTS[0], model="gpt2", max_tokens=5, temperature=1, seed=1)
    assert generated["answers"][0]["text"] == tiny("gpt2").generate(TEXTS[0], max_tokens=5, temperature=1.0, seed=1)


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("/predict", {}, 'there is no text: send "text"'),
        ("/predict", {"texts": []}, "empty list"),
        ("/predict", {"text": "a", "texts": ["b"]}, "both sent"),
        ("/predict", {"text": 3}, '"text'),
        ("/predict", {"text": None, "texts": ["a", 3]}, '"texts.1'),
        ("/predict", {"text": "a", "txt": "b"}, 'field "txt" is not known'),
        ("/predict", {"texts": ["a", " "]}, "input 1: it holds an empty text"),
        ("/predict", {"text": " "}, "the input holds an empty text"),
        ("/predict", {"text": "a", "abstain": 2}, '"abstain" is 2'),
        ("/predict", {"text": "a", "model": "masked"}, "What it can do: "),
        ("/generate", {"prompt": "a"}, "cannot generate"),
        ("/fill", {"text": MASKED}, "no head for masked words"),
        ("/translate", {"text": "a"}, "only encoder-decoders translate"),
        ("/answer", {"question": "a"}, 'send "question" and "context"'),
        ("/embed", {"text": "a", "layer": 99}, "layer 99"),
        ("/embed", {"text": "a", "pooling": "men"}, 'Did you mean "mean"'),
        ("/generate", {"prompt": "a", "model": "gpt2", "top_p": 7}, "top_p must be"),
        ("/v1/embeddings", {"input": [[1, 2]]}, '"input'),
    ],
)
def test_bad_requests_are_explained(client: TestClient, route: str, body: dict[str, Any], message: str) -> None:
    assert message in post(client, route, 422, **body)["error"]


def test_unknown_models_and_bodies(client: TestClient) -> None:
    assert 'Did you mean "masked"' in post(client, "/predict", 404, text="a", model="maskd")["error"]
    for body in (b"{", b'{"text": "a"', b"\xff", b"[" * 100_000):
        response = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 400, response.text
        assert set(response.json()) == {"error", "error_type"}
    half = client.post(
        "/predict", content=b'{"text": "a", "model": "\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert half.status_code == 404
    for body in (b"[]", b"3", b"null", b"", b'{"text": "\\ud800"}'):
        response = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 422


def test_one_bad_text_fails_alone_if_asked(client: TestClient) -> None:
    answers = post(client, "/predict", texts=[TEXTS[0], " ", TEXTS[1]], on_error="null")["answers"]
    assert [answer is None for answer in answers] == [False, True, False]
    assert_same(answers[0], tiny("bert").predict([TEXTS[0]])[0].json())


@pytest.mark.parametrize(
    ("text", "words"), [(5, '"text" is 5: expected a valid string.'), ({"a": 1}, "\"text\" is {'a': 1}: expected")]
)
def test_a_wrong_kind_is_named_in_words(client: TestClient, text: object, words: str) -> None:
    response = client.post("/predict", json={"model": "bert", "text": text})
    assert response.status_code == 422
    assert response.json()["error"].startswith(words)
