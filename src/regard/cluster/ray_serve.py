"""The server as replicas on a Ray cluster: every replica has the models and the same application."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from regard.cluster.ray_pool import connect
from regard.serve.api_keys import ApiKeys
from regard.serve.settings import ServeLimits

NAME = "regard"
ONGOING = 64  # requests of a replica at once: enough for full batches, few enough that others share the load


def application(sources: Sequence[str], limits: ServeLimits, keys: ApiKeys, load_options: dict[str, Any]) -> Any:
    """The application of one replica, with its models loaded."""
    from regard.serve.http.app import create_app
    from regard.serve.model_table import ModelTable

    table = ModelTable(limits, **load_options)
    table.load_all(sources)
    return create_app(table, keys=keys)


def deploy(
    sources: Sequence[str],
    limits: ServeLimits,
    keys: ApiKeys,
    *,
    host: str,
    port: int,
    replicas: int = 0,
    cpus: float = 1.0,
    **load_options: Any,
) -> str:
    """Start replicas, so many or as many as the load needs (0), and return the address.

    The cluster is that of RAY_ADDRESS, else one that is started on this machine.
    """
    connect()
    serve: Any = importlib.import_module("ray.serve")
    serve.start(http_options={"host": host, "port": port})
    scale: dict[str, Any] = {"num_replicas": replicas}
    if not replicas:
        scale = {"autoscaling_config": {"min_replicas": 1, "target_ongoing_requests": ONGOING // 4}}
    deployment = serve.deployment(
        name=NAME, max_ongoing_requests=ONGOING, ray_actor_options={"num_cpus": cpus}, **scale
    )(serve.ingress(lambda: application(sources, limits, keys, load_options))(type("Replica", (), {})))
    serve.run(deployment.bind(), name=NAME, route_prefix="/")
    return f"http://{host}:{port}"


def stop() -> None:
    """End the replicas; those on a cluster of others leave it as it was."""
    serve: Any = importlib.import_module("ray.serve")
    serve.delete(NAME)
