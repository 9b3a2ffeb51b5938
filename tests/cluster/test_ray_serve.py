from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import regard
from regard.cluster.ray_serve import application, deploy, stop
from regard.serve.api_keys import ApiKeys
from regard.serve.listener import open_socket
from regard.serve.settings import ServeLimits

TEXTS = [f"a lovely film {number}" for number in range(20)]


def test_the_application_of_a_replica(trained: Path) -> None:
    app = application([str(trained)], ServeLimits(), ApiKeys(), {"device": "cpu"})
    expected = [answer.json() for answer in regard.load(trained, device="cpu").predict(TEXTS)]
    with TestClient(app) as client:
        assert client.post("/predict", json={"texts": TEXTS}).json()["answers"] == expected
        assert client.get("/ready").status_code == 200
    app.state.table.close(seconds=5)


def test_replicas_give_the_same_answers(trained: Path) -> None:
    ray: Any = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("ray.serve", reason="ray[serve] is not installed")
    with open_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    expected = [answer.json() for answer in regard.load(trained, device="cpu").predict(TEXTS)]
    ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False)
    try:
        for replicas in (1, 2):
            url = deploy(
                [str(trained)],
                ServeLimits(),
                ApiKeys(),
                host="127.0.0.1",
                port=port,
                replicas=replicas,
                cpus=0.5,
                device="cpu",
            )
            with regard.Client(url) as client:
                assert client.info()["ready"]
                for _ in range(5):
                    assert client.predict(TEXTS) == expected
        stop()
    finally:
        ray.shutdown()
