from __future__ import annotations

from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.serve.http.mounted import PageAnswer, mount_page


def test_a_page_below_a_prefix() -> None:
    app = FastAPI()
    mount_page(
        app, "/look", lambda method, path, body: PageAnswer(200, "text/plain", f"{method} {path} ".encode() + body)
    )
    with TestClient(app) as client:
        assert client.get("/look").text == "GET / "
        assert client.get("/look/app.js").text == "GET /app.js "
        assert client.post("/look/view/heads", content=b"{}").text == "POST /view/heads {}"
        response = client.post("/look/view/heads", content=b"{}", headers={"Origin": "https://example.com"})
        assert response.status_code == 403
        own = {"Origin": "http://testserver"}
        assert client.post("/look/view/heads", content=b"{}", headers=own).status_code == 200
