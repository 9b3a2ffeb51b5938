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


def test_only_required_fields_are_called_so() -> None:
    with client_of("bert") as client:
        page = client.get("/docs", headers={"Host": "models.example:81"}).text
    assert page.count("<td>required</td>") == 1  # input of /v1/embeddings
    assert "<td>input</td><td>text or list of text</td><td>required</td>" in page
    assert "<td>abstain</td><td>number</td><td></td><td>Mark answers" in page
    assert "curl http://models.example:81/predict " in page
    assert "<code>truncated</code>" in page
    assert "`" not in page
