"""Actors of Ray that compute shards. One that dies, or whose machine does, is replaced, and its shards run again."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from regard.cluster.shards import ComputedShard, Shard
from regard.errors import MissingExtra, RegardError

AHEAD = 2  # shards that each actor has: one is computed, one waits


class ShardWorker:
    """A model in an actor: answers of `predict`, or vectors of `embed`."""

    def __init__(self, model: str, kind: str, load_options: dict[str, Any], options: dict[str, Any]) -> None:
        from regard.predict.load import load

        self.model = load(model, **load_options)
        self.kind = kind
        self.options = options

    def compute(self, items: list[Any]) -> list[dict[str, Any]]:
        if self.kind == "embed":
            return [{"embedding": vector} for vector in self.model.embed(items, **self.options).tolist()]
        inputs = [tuple(item) if isinstance(item, list) else item for item in items]
        return [answer.json() for answer in self.model.predict(inputs, **self.options)]


def connect() -> Any:
    """Ray, connected to the cluster that RAY_ADDRESS names, else to one that is started on this machine."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra("the cluster", "ray")
    ray: Any = importlib.import_module("ray")  # has no types where it is not installed
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    return ray


class RayPool:
    """As many actors as `workers` says, 0 for one per two processors; each has `cpus` of the cluster."""

    def __init__(self, arguments: tuple[Any, ...], *, workers: int = 0, cpus: float = 1.0) -> None:
        self.ray = ray = connect()
        self.actor = ray.remote(num_cpus=cpus, max_restarts=-1, max_task_retries=-1)(ShardWorker)
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)) // 2)
        self.workers = [self.actor.remote(*arguments) for _ in range(count)]

    def compute(self, shards: Iterator[Shard]) -> Iterator[ComputedShard]:
        """The answers of each shard, in the order in which they are ready.

        Ray starts an actor that died again, on another machine if needed, and repeats its calls; only the first result
        of a shard is used.
        """
        waiting: dict[Any, tuple[Shard, Any]] = {}
        for worker in AHEAD * self.workers:
            self._send(shards, worker, waiting)
        while waiting:
            (done, *_), _ = self.ray.wait(list(waiting), num_returns=1)
            shard, worker = waiting.pop(done)
            try:
                answers = self.ray.get(done)
            except self.ray.exceptions.RayTaskError as error:
                cause = error.as_instanceof_cause()
                raise cause if isinstance(cause, RegardError) else error from error
            self._send(shards, worker, waiting)
            yield shard, answers

    def _send(self, shards: Iterator[Shard], worker: Any, waiting: dict[Any, tuple[Shard, Any]]) -> None:
        shard = next(shards, None)
        if shard is not None:
            waiting[worker.compute.remote(list(shard.items))] = (shard, worker)

    def close(self) -> None:
        for worker in self.workers:
            self.ray.kill(worker)
