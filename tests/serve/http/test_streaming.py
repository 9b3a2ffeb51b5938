from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient
from tests.serve.helpers import TEXTS, client_of, tiny


def events(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    response = client.post("/generate", json={"prompt": TEXTS[0], "stream": True, **body})
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


def test_pieces_are_the_generated_text() -> None:
    with client_of("gpt2") as client:
        *pieces, end = events(client, max_tokens=12, seed=1, temperature=1)
        text = tiny("gpt2").generate(TEXTS[0], max_tokens=12, seed=1, temperature=1.0)
        assert "".join(piece["text"] for piece in pieces) == text
        assert len(pieces) > 2
        assert end == {
            "done": True,
            "model": "gpt2",
            "answer": client.post(
                "/generate", json={"prompt": TEXTS[0], "max_tokens": 12, "seed": 1, "temperature": 1}
            ).json()["answers"][0],
        }
        assert end["answer"]["finish_reason"] == "length"


def test_errors_before_the_first_piece_have_their_status() -> None:
    with client_of("gpt2", "bert") as client:
        for body in (
            {"prompt": " "},
            {"prompt": "a", "top_p": 9},
            {"prompts": ["a", "b"]},
            {"prompt": "a", "model": "bert"},
        ):
            response = client.post("/generate", json={"stream": True, **body})
            assert response.status_code == 422, response.text
            assert response.json().keys() == {"error", "error_type"}
