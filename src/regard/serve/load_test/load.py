"""Open-loop load: requests at random times, and what became of each.

The times between two requests are exponential (a Poisson process), and no request waits for an earlier one. A latency
counts from the time at which the request was due, so that a server that falls behind does not look fast.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from regard.errors import InputError, setting
from regard.serve.load_test.connections import AsyncConnections
from regard.serve.load_test.workload import Workload

NO_ANSWER, NOT_SENT = "no answer", "not sent"
MAX_OPEN = 1000  # requests in progress; above it they are not sent, which counts as an error


@dataclass(frozen=True)
class RequestResult:
    """One request: seconds from the start at which it was due, seconds until its answer, and the status."""

    due: float
    seconds: float
    status: str


@dataclass(frozen=True)
class LoadResult:
    """What became of the requests of one rate."""

    rate: float  # requests per second that were sent
    throughput: float  # answers with status 200 per second
    p50_ms: float
    p95_ms: float
    p99_ms: float
    requests: int
    errors: Mapping[str, int]  # by status

    def holds(self, goal_ms: float) -> bool:
        """Whether p99 is within the goal and at most one request in a thousand failed."""
        return self.p99_ms <= goal_ms and sum(self.errors.values()) <= self.requests / 1000


async def run_load(
    connections: AsyncConnections, workload: Workload, *, rate: float, seconds: float, seed: int, timeout: float
) -> list[RequestResult]:
    """Send requests for some seconds, and wait for the answers."""
    if not rate > 0 or not seconds > 0:
        raise InputError(f"{setting('rate')} is {rate:g} for {seconds:g} seconds, expected more than 0.")
    rng, bodies = random.Random(seed), workload.bodies(seed + 1)
    started = time.monotonic()
    tasks: set[asyncio.Task[None]] = set()
    results: list[RequestResult] = []

    async def send(due: float) -> None:
        status = await _status(connections, workload.route, next(bodies), timeout)
        results.append(RequestResult(due, time.monotonic() - started - due, status))

    due = rng.expovariate(rate)
    while due < seconds:
        await asyncio.sleep(max(0.0, started + due - time.monotonic()))
        if len(tasks) < MAX_OPEN:
            task = asyncio.create_task(send(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        else:
            results.append(RequestResult(due, 0.0, NOT_SENT))
        due += rng.expovariate(rate)
    if tasks:
        await asyncio.wait(tasks)
    return results


async def _status(connections: AsyncConnections, route: str, body: bytes, timeout: float) -> str:
    try:
        async with asyncio.timeout(timeout):
            return str((await connections.post(route, body))[0])
    except (OSError, EOFError, TimeoutError, ValueError):
        return NO_ANSWER


def summarize(results: Sequence[RequestResult], *, rate: float, seconds: float) -> LoadResult:
    """Throughput, latencies of the good answers, and errors."""
    good = sorted(result.seconds for result in results if result.status == "200")
    ended = max([seconds, *(result.due + result.seconds for result in results)])
    errors = Counter(result.status for result in results if result.status != "200")
    p50, p95, p99 = (1000 * percentile(good, share) for share in (0.5, 0.95, 0.99))
    return LoadResult(rate, len(good) / ended, p50, p95, p99, len(results), dict(errors))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of sorted values does not exceed; infinity if there are none."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else math.inf


Measure = Callable[[float], LoadResult]


def search_rate(measure: Measure, *, goal_ms: float, start: float = 4.0, steps: int = 5) -> list[LoadResult]:
    """Measure rates until the highest that holds the goal is known to about a twentieth: doubled, then bisected."""
    results = [measure(start)]
    while results[-1].holds(goal_ms) and results[-1].rate < 100_000:
        results.append(measure(2 * results[-1].rate))
    while not results[-1].holds(goal_ms) and len(results) < steps and not any(one.holds(goal_ms) for one in results):
        results.append(measure(results[-1].rate / 4))
    low = max((one.rate for one in results if one.holds(goal_ms)), default=0.0)
    high = min(one.rate for one in results if not one.holds(goal_ms)) if low < 100_000 else low
    for _ in range(steps if low else 0):
        if high - low <= 0.05 * high:
            break
        one = measure((low + high) / 2)
        results.append(one)
        low, high = (one.rate, high) if one.holds(goal_ms) else (low, one.rate)
    return sorted(results, key=lambda one: one.rate)


def best_rate(results: Sequence[LoadResult], *, goal_ms: float) -> float | None:
    """The highest rate that holds the goal, of those where no lower one fails it; None if there is none."""
    best = None
    for one in sorted(results, key=lambda one: one.rate):
        if not one.holds(goal_ms):
            break
        best = one.rate
    return best
