from __future__ import annotations

from starlette.testclient import TestClient
from tests.serve.helpers import client_of, table_of

from regard.serve.api_keys import ApiKeys
from regard.serve.http.app import create_app
from regard.serve.model_table import ModelTable
from regard.serve.settings import ServeLimits


def test_what_the_server_says_about_itself() -> None:
    with client_of("bert", "gpt2") as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").json() == {"ready": True, "models": ["bert", "gpt2"]}
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["bert", "gpt2"]
        first = client.get("/info").json()["models"][0]
        assert first["family"] == "bert"
        assert first["engine"] == "torch"
        assert first["routes"] == ["/predict", "/embed", "/explain", "/tokenize"]
        client.post("/predict", json={"text": "a film"})
        metrics = client.get("/metrics").text
        assert 'regard_requests_total{route="/predict",status="200"} 1.0' in metrics
        assert "regard_batch_tokens_bucket" in metrics
        assert "/v1/embeddings" in client.get("/openapi.json").json()["paths"]
        assert client.get("/docs").status_code == 200


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
        assert response.status_code == 503
        assert response.headers["Retry-After"] == "1"
        assert client.post("/predict", json={"text": "a"}).json()["error_type"] == "NotReady"
        table.draining = True
        assert "shutting down" in client.get("/ready").json()["error"]


def test_the_page_is_there() -> None:
    with client_of("bert", keys=ApiKeys(["a-long-key"])) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        for name in ("page.css", "page.js", "answers.js"):
            assert f"/page/{name}" in page.text
            assert client.get(f"/page/{name}").status_code == 200
        assert client.get("/page/other", headers={"Authorization": "Bearer a-long-key"}).status_code == 404
        assert client.get("/page/..%2f..%2fsettings.py").status_code == 401
