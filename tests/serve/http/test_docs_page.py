from __future__ import annotations

from tests.serve.helpers import client_of


def test_routes_and_fields_are_listed_without_scripts() -> None:
    with client_of("bert") as client:
        response = client.get("/docs")
    assert response.status_code == 200
    for words in (
        "POST /predict",
        "POST /v1/embeddings",
        "GET /health",
        "<td>normalize</td>",
        "list of text",
        "&quot;texts",
    ):
        assert words in response.text
    assert "<script" not in response.text
    assert "https://" not in response.text
