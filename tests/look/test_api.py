"""The JSON API of the page, and the session of models behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tests.look.models import KINDS, TEXT, api, look_input, session

from regard.errors import InputError
from regard.look import session as module
from regard.look.api import MAX_BODY, LookApi
from regard.look.heads import weight_map
from regard.look.reading import LookInput
from regard.look.session import LookSession, describe, input_fields
from regard.look.views.arrays import unpacked
from regard.predict import Model

# The API without a socket: files, views and errors.


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


# Models of the page, and the texts they have read.


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    look = session(KINDS["encoder"]())
    first = look.read(0, look_input())
    assert look.read(0, look_input()) is first
    monkeypatch.setattr(module, "MAX_BYTES", 1)
    look.read(0, look_input("another text"))
    assert look.read(0, look_input()) is not first


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        (None, ("text", "second text (optional)")),
        ("embed", ("text", "second text (optional)")),
        ("classify", ("text",)),
        ("tag", ("text",)),
        ("pair", ("first text", "second text")),
        ("answer", ("question", "context")),
    ],
)
def test_texts_that_a_model_reads(monkeypatch: pytest.MonkeyPatch, task: str | None, fields: tuple[str, ...]) -> None:
    monkeypatch.setattr(Model, "task", task)
    assert input_fields(KINDS["encoder"]()) == fields


def test_models_by_number() -> None:
    look = session(KINDS["encoder"]())
    with pytest.raises(InputError, match="model 1 does not exist"):
        look.model(1)
    with pytest.raises(InputError, match="no model"):
        LookSession([])


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_is_described(kind: str) -> None:
    words = describe("name", KINDS[kind]())
    assert words["network"]
    assert words["inputs"]
    if kind == "plain gru":
        assert words["parts"] == []
        assert "without attention" in words["network"]
