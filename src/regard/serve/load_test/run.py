"""A load test of one server, rate after rate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.client import ServerError
from regard.errors import shorten
from regard.serve.load_test.connections import AsyncConnections
from regard.serve.load_test.load import LoadResult, RequestResult, run_load, summarize
from regard.serve.load_test.workload import Workload


@dataclass
class LoadTest:
    """The settings of a test. Every rate has its own texts, so that no answer is in a cache."""

    url: str
    workload: Workload
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 10.0
    timeout: float = 30.0
    seed: int = 0

    def first_answer(self) -> None:
        """Ask once. Raises ServerError or OSError if there is no answer with status 200."""
        status, body = asyncio.run(self._ask())
        if status != 200:
            try:
                message = json.loads(body)["error"]
            except (ValueError, KeyError, TypeError):
                message = shorten(body.decode("utf-8", "replace"), 200)
            raise ServerError(f"status {status}: {message}", status=status, error_type="HTTPError")

    async def _ask(self) -> tuple[int, bytes]:
        connections = AsyncConnections(self.url, self.headers)
        try:
            return await connections.post(self.workload.route, next(self.workload.bodies(self.seed)))
        finally:
            await connections.close()

    def measure(self, rate: float) -> LoadResult:
        """What becomes of requests at a rate."""
        self.seed += 2
        results = asyncio.run(self._run(rate))
        return summarize(results, rate=rate, seconds=self.seconds)

    async def _run(self, rate: float) -> list[RequestResult]:
        connections = AsyncConnections(self.url, self.headers)
        try:
            return await run_load(
                connections, self.workload, rate=rate, seconds=self.seconds, seed=self.seed, timeout=self.timeout
            )
        finally:
            await connections.close()
