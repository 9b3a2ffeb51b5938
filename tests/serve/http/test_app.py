from __future__ import annotations

import pytest
from tests.serve.helpers import client_of

ROUTES = {
    *("/predict", "/embed", "/fill", "/answer", "/translate", "/generate", "/tokenize", "/explain", "/v1/embeddings"),
    *("/health", "/ready", "/info", "/metrics", "/v1/models", "/models/reload"),
}


def test_the_description_has_every_route_with_an_example() -> None:
    with client_of("bert") as client:
        description = client.get("/openapi.json").json()
    assert description["paths"].keys() >= ROUTES
    bodies = {name: schema for name, schema in description["components"]["schemas"].items() if name.endswith("Body")}
    assert [name for name, schema in bodies.items() if "examples" not in schema and name != "ReloadBody"] == []
    assert all(schema["additionalProperties"] is False for schema in bodies.values())


def test_fastapi_records_no_spans_and_logs_of_its_own() -> None:
    # It would log the texts of bad requests.
    with client_of("bert") as client:
        settings = getattr(client.app, "_telemetry", None)
    if settings is None:
        pytest.skip("this FastAPI has no telemetry of its own")
    assert not any(settings[name] for name in ("tracing", "operation_spans", "logs"))
