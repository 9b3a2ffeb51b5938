"""The API without a socket: files, views and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tests.look.models import KINDS, TEXT, api

from regard.look.api import MAX_BODY, LookApi
from regard.look.heads import weight_map
from regard.look.reading import LookInput
from regard.look.views.arrays import unpacked


@pytest.fixture(scope="module")
def encoder() -> LookApi:
    return api(KINDS["encoder"]())


def post(app: LookApi, path: str, **values: Any) -> dict[str, Any]:
    response = app.handle("POST", f"/api/{path}", json.dumps(values).encode())
    answer: dict[str, Any] = json.loads(response.body)
    assert response.status == 200, answer
    return answer


def test_files_of_the_page(encoder: LookApi) -> None:
    page = encoder.handle("GET", "/")
    assert page.status == 200
    assert page.content_type.startswith("text/html")
    assert b"regard look" in page.body
    assert encoder.handle("GET", "/app.js").content_type.startswith("text/javascript")
    for path in ("/nothing.js", "/../api.py", "/%2e%2e/api.py", "/index.html/..", "/app.js\x00"):
        assert encoder.handle("GET", path).status == 404


def test_page_and_tokens(encoder: LookApi) -> None:
    assert post(encoder, "page")["models"][0]["parts"] == ["encoder"]
    answer = post(encoder, "read", text=TEXT)
    assert answer["parts"][0]["layers"] == 2
    assert len(answer["tokens"]) == len(answer["parts"][0]["keys"])


def test_maps_hold_the_weights(encoder: LookApi) -> None:
    part = encoder.session.read(0, LookInput(TEXT)).parts[0]
    whole = post(encoder, "map", text=TEXT, layer=2)
    assert (unpacked(whole["weights"]) - weight_map(part, 2)).abs().max() < 1e-5
    grid = post(encoder, "grid", text=TEXT)
    scaled = unpacked(grid["maps"])[1, 1] * grid["largest"][1][1]
    assert (scaled - weight_map(part, 2, [1])[0]).abs().max() < 3e-3


def test_pairs(encoder: LookApi) -> None:
    answer = post(encoder, "pair", text=TEXT, layer=1, head=0, query=1, key=2)
    assert torch.tensor(answer["products"]).sum() == pytest.approx(answer["dot"], abs=1e-4)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/api/nothing", b"{}", 404, "there is no"),
        ("/api/map", b"{", 400, "not JSON"),
        ("/api/map", b"[]", 400, "expected an object"),
        ("/api/map", b"[" * 100_000, 400, "not JSON"),
        ("/api/read", b"{}", 400, "the text is empty"),
        ("/api/map", b'{"text": "a", "layer": 9}', 400, "layer 9 does not exist"),
        ("/api/read", b'{"text": "a", "model": 4}', 400, "model 4 does not exist"),
        ("/api/read", b"x" * (MAX_BODY + 1), 400, "expected at most"),
    ],
)
def test_errors_are_words(encoder: LookApi, path: str, body: bytes, status: int, message: str) -> None:
    response = encoder.handle("POST", path, body)
    answer = json.loads(response.body)
    assert response.status == status
    assert message in answer["error"]
    assert answer["error_type"]


def test_the_page_asks_where_words_are_no_errors(encoder: LookApi) -> None:
    response = encoder.handle("POST", "/view/map", b'{"text": "a", "layer": 9}')
    assert response.status == 200
    assert "layer 9 does not exist" in json.loads(response.body)["error"]


def test_other_methods(encoder: LookApi) -> None:
    assert encoder.handle("DELETE", "/api/read").status == 405
