from __future__ import annotations

import json

import pytest

from regard.errors import FolderError, InputError
from regard.serve.http.problems import problem_of
from regard.serve.settings import NotReady, QueueFull, TooLarge, UnknownModel


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
