"""The routes through HTTP: answers, errors, and what the server says about itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.answers import assert_same
from tests.serve.helpers import CONTEXT, TEXTS, client_of, table_of, tiny

from regard.errors import FolderError, InputError
from regard.generate.settings import DEFAULTS
from regard.serve.api_keys import ApiKeys
from regard.serve.http.app import create_app
from regard.serve.http.direct import DirectRoutes
from regard.serve.http.metrics import HISTOGRAMS, ServeMetrics
from regard.serve.http.mounted import PageAnswer, mount_page
from regard.serve.http.problems import problem_of
from regard.serve.http.schemas import GenerateBody
from regard.serve.model_table import ModelTable
from regard.serve.settings import NotReady, QueueFull, ServeLimits, TooLarge, UnknownModel

MASKED = "the cook [MASK] the soup"
JSON = {"Content-Type": "application/json"}
ROUTES = {
    *("/predict", "/embed", "/fill", "/answer", "/translate", "/generate", "/tokenize", "/explain", "/v1/embeddings"),
    *("/health", "/ready", "/info", "/metrics", "/v1/models", "/models/reload"),
}


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


# answers


def test_answers_are_those_of_predict(client: TestClient) -> None:
    result = post(client, "/predict", texts=TEXTS)
    assert result["model"] == "bert"
    assert_same(result["answers"], [answer.json() for answer in tiny("bert").predict(TEXTS)])
    one = post(client, "/predict", text=TEXTS[0], model="tagger")
    assert_same(one["answers"], [tiny("tagger").predict([TEXTS[0]])[0].json()])
    some = post(client, "/predict", texts=[TEXTS[0], " ", TEXTS[1]], on_error="null")["answers"]
    assert [answer is None for answer in some] == [False, True, False]
    assert_same(some[0], result["answers"][0])


def test_vectors(client: TestClient) -> None:
    answers = post(client, "/embed", texts=TEXTS, model="vectors")["answers"]
    vectors = np.array([answer["embedding"] for answer in answers], np.float32)
    np.testing.assert_array_equal(vectors, tiny("vectors").embed(TEXTS))
    result = post(client, "/v1/embeddings", input=TEXTS[:2], model="vectors")
    expected = tiny("vectors").embed(TEXTS[:2], normalize=True)
    np.testing.assert_array_equal(np.array([row["embedding"] for row in result["data"]], np.float32), expected)
    assert result["object"] == "list"
    assert result["usage"]["total_tokens"] > 10
    assert [row["index"] for row in result["data"]] == [0, 1]
    coded = post(client, "/v1/embeddings", input=TEXTS[0], model="vectors", encoding_format="base64")
    vector = np.frombuffer(base64.b64decode(coded["data"][0]["embedding"]), "<f4")
    np.testing.assert_array_equal(vector, expected[0])


def test_other_routes(client: TestClient) -> None:
    fill = post(client, "/fill", text=MASKED, model="masked", top=2)["answers"][0]
    assert [word["word"] for word in fill["masks"][0]] == [word.word for word in tiny("masked").fill(MASKED, top=2)[0]]
    question: dict[str, Any] = {"question": "who opened", "context": CONTEXT}
    expected = [tiny("reader").predict([("who opened", CONTEXT)])[0].json()]
    assert post(client, "/answer", **question, model="reader")["answers"] == expected
    assert post(client, "/answer", questions=[question], model="reader")["answers"] == expected
    assert post(client, "/tokenize", text="the soup")["answers"][0]["offsets"][2] == [4, 8]
    translated = post(client, "/translate", text=TEXTS[0], model="t5", beams=2)["answers"][0]
    assert translated["translation"] == tiny("t5").translate([TEXTS[0]], beams=2)[0]
    generated = post(client, "/generate", prompt=TEXTS[0], model="gpt2", max_tokens=5, temperature=1, seed=1)
    assert generated["answers"][0]["text"] == tiny("gpt2").generate(TEXTS[0], max_tokens=5, temperature=1.0, seed=1)
    explained = post(client, "/explain", text=TEXTS[0])["answers"][0]
    assert len(explained["words"]) == len(TEXTS[0].split())


def test_decoding_settings_are_those_of_generate() -> None:
    names = GenerateBody.model_fields.keys() - {"model", "on_error", "prompt", "prompts", "stream"}
    assert DEFAULTS.keys() - names == {"early_stop", "constraint"}
    assert names <= DEFAULTS.keys()


def test_streamed_pieces_are_the_generated_text(client: TestClient) -> None:
    body: dict[str, Any] = {"prompt": TEXTS[0], "model": "gpt2", "max_tokens": 12, "seed": 1, "temperature": 1}
    response = client.post("/generate", json={**body, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    *pieces, end = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    assert len(pieces) > 2
    assert end == {"done": True, "model": "gpt2", "answer": post(client, "/generate", **body)["answers"][0]}
    assert "".join(piece["text"] for piece in pieces) == end["answer"]["text"]


# errors


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("/predict", {}, 'there is no text: send "text"'),
        ("/predict", {"texts": []}, "empty list"),
        ("/predict", {"text": "a", "texts": ["b"]}, "both sent"),
        ("/predict", {"text": 5}, '"text" is 5: expected a valid string.'),
        ("/predict", {"text": {"a": 1}}, "\"text\" is {'a': 1}: expected"),
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
        ("/generate", {"prompt": " ", "model": "gpt2", "stream": True}, "empty"),
        ("/generate", {"prompt": "a", "model": "gpt2", "stream": True, "top_p": 9}, "top_p must be"),
        ("/generate", {"prompts": ["a", "b"], "model": "gpt2", "stream": True}, '"stream" is for one prompt; 2'),
        ("/generate", {"prompt": "a", "stream": True}, "cannot generate"),
        ("/v1/embeddings", {"input": [[1, 2]]}, '"input'),
    ],
)
def test_bad_requests_are_explained(client: TestClient, route: str, body: dict[str, Any], message: str) -> None:
    assert message in post(client, route, 422, **body)["error"]


BODIES: list[tuple[bytes, int]] = [
    (b'{"text": "a film"}', 200),
    (b'{"text": "caf\\u00e9 \xe2\x82\xac"}', 200),
    (b'{"texts": ["a film", "a"]}', 200),
    (b'{"text": "a", "text": "a film"}', 200),
    (b'{"text": "a film", "abstain": 1}', 200),
    (b"{", 400),
    (b'{"text": "a"', 400),
    (b"\xff", 400),
    (b"[" * 100_000, 400),
    ('{"text": "a film"}'.encode("utf-16"), 200),
    (b'{"text": "a", "model": "none"}', 404),
    (b'{"text": "a", "model": "\\ud800"}', 404),
    (b"[]", 422),
    (b"3", 422),
    (b"null", 422),
    (b"", 422),
    (b'{"text": "\\ud800"}', 422),
    (b'{"text": "a film", "abstain": NaN}', 422),
    (b'{"text": "a film", "abstain": "0.5"}', 200),
    (b'{"text": "a film", "abstain": ' + b"9" * 5000 + b"}", 400),
    (b'{"txt": "a"}', 422),
    (b'{"text": " "}', 422),
]


def test_the_short_way_gives_the_answers_and_errors_of_fastapi() -> None:
    with table_of("bert") as table:
        short, other = create_app(table), create_app(table)
        other.user_middleware = [one for one in other.user_middleware if one.cls is not DirectRoutes]
        clients = [TestClient(app, raise_server_exceptions=False) for app in (short, other)]
        for body, status in BODIES:
            answer, same = (client.post("/predict", content=body, headers=JSON) for client in clients)
            assert (answer.status_code, answer.content) == (same.status_code, same.content), body
            assert answer.status_code == status, (body, answer.text)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("a"), 422),
        (FolderError("a"), 422),
        (TooLarge("a"), 413),
        (UnknownModel("a"), 404),
        (NotReady("a"), 503),
        (QueueFull("a", retry_after=2.1), 429),
        (RuntimeError("secret"), 500),
    ],
)
def test_every_error_has_its_status(error: Exception, status: int) -> None:
    response = problem_of(error)
    assert response.status_code == status
    assert json.loads(bytes(response.body)).keys() == {"error", "error_type"}
    assert b"secret" not in response.body
    assert response.headers.get("Retry-After") == {429: "3", 503: "1"}.get(status)


def test_recommended_calls_are_routes() -> None:
    error = InputError("What it can do: model.embed(texts), model.fill(text). Or model.save(folder).")
    words = json.loads(bytes(problem_of(error).body))["error"]
    assert words == "What it can do: POST /embed, POST /fill. Or model.save(folder)."


# the server itself


def test_what_the_server_says_about_itself() -> None:
    with client_of("bert", "gpt2") as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").json() == {"ready": True, "models": ["bert", "gpt2"]}
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["bert", "gpt2"]
        first = client.get("/info").json()["models"][0]
        assert (first["family"], first["engine"]) == ("bert", "torch")
        assert first["routes"] == ["/predict", "/embed", "/explain", "/tokenize"]
        post(client, "/predict", text="a film")
        metrics = client.get("/metrics").text
        assert 'regard_requests_total{route="/predict",status="200"} 1.0' in metrics
        assert "regard_batch_tokens_bucket" in metrics
        assert client.delete("/predict").json()["error_type"] == "MethodNotAllowed"


def test_a_dead_worker_is_noticed() -> None:
    with table_of("bert") as table, TestClient(create_app(table)) as client:
        table.get(None).close(seconds=5)
        assert client.get("/health").status_code == 503
        assert client.get("/ready").status_code == 503
        assert client.post("/predict", json={"text": "a film"}).status_code == 503


def test_not_ready_while_loading_and_draining() -> None:
    table = ModelTable(ServeLimits())
    with TestClient(create_app(table)) as client:
        assert client.get("/health").status_code == 200
        response = client.get("/ready")
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        assert client.post("/predict", json={"text": "a"}).json()["error_type"] == "NotReady"
        table.draining = True
        assert client.get("/health").json() == {"status": "ok"}
        assert "shutting down" in client.get("/ready").json()["error"]
        assert "shutting down" in client.post("/predict", json={"text": "a"}).json()["error"]


def test_measurements_become_histograms() -> None:
    metrics = ServeMetrics()
    for name in HISTOGRAMS:
        metrics.observe(name, 0.3)
    text = metrics.text().decode()
    assert 'regard_run_seconds_bucket{le="0.25"} 0.0' in text
    assert 'regard_run_seconds_bucket{le="0.5"} 1.0' in text


def test_the_description_has_every_route_with_an_example(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    assert description["paths"].keys() >= ROUTES
    bodies = {name: schema for name, schema in description["components"]["schemas"].items() if name.endswith("Body")}
    assert [name for name, schema in bodies.items() if "examples" not in schema and name != "ReloadBody"] == []
    assert all(schema["additionalProperties"] is False for schema in bodies.values())


def test_fastapi_records_no_spans_and_logs_of_its_own(client: TestClient) -> None:
    # It would log the texts of bad requests.
    settings = getattr(client.app, "_telemetry", None)
    if settings is None:
        pytest.skip("this FastAPI has no telemetry of its own")
    assert not any(settings[name] for name in ("tracing", "operation_spans", "logs"))


def test_docs_list_routes_and_fields_without_scripts(client: TestClient) -> None:
    page = client.get("/docs", headers={"Host": "models.example:81"}).text
    for words in ("POST /predict", "POST /v1/embeddings", "GET /health", "<td>normalize</td>", "&quot;texts"):
        assert words in page
    assert page.count("<td>required</td>") == 1
    assert "<td>input</td><td>text or list of text</td><td>required</td>" in page
    assert "<td>abstain</td><td>number</td><td></td><td>Mark answers" in page
    assert "curl http://models.example:81/predict " in page
    assert "<code>truncated</code>" in page
    for words in ("<script", "https://", "`"):
        assert words not in page


def test_the_page_is_there_also_without_a_key() -> None:
    with client_of("bert", keys=ApiKeys(["a-long-key"])) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        for name in ("page.css", "page.js", "answers.js"):
            assert f"/page/{name}" in page.text
            assert client.get(f"/page/{name}").status_code == 200
        assert client.get("/page/other", headers={"Authorization": "Bearer a-long-key"}).status_code == 404
        assert client.get("/page/..%2f..%2fsettings.py").status_code == 401


def test_a_page_below_a_prefix() -> None:
    app = FastAPI()
    mount_page(
        app, "/look", lambda method, path, body: PageAnswer(200, "text/plain", f"{method} {path} ".encode() + body)
    )
    with TestClient(app) as client:
        assert client.get("/look").text == "GET / "
        assert client.get("/look/app.js").text == "GET /app.js "
        assert client.post("/look/view/heads", content=b"{}").text == "POST /view/heads {}"
        for origin, status in (("https://example.com", 403), ("http://testserver", 200)):
            assert client.post("/look/view/heads", headers={"Origin": origin}).status_code == status
