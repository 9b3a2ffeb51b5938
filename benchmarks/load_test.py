"""Measure a server that runs: throughput and latencies at given rates, or the highest rate that holds a goal.

    python benchmarks/load_test.py http://127.0.0.1:8000 --route /predict
    python benchmarks/load_test.py http://127.0.0.1:8000 --rate 50 100 200 --seconds 20   at these requests per second
    python benchmarks/load_test.py http://127.0.0.1:8000 --goal-ms 50 --texts texts.txt   with one text per line

The load is open-loop: the times between two requests are exponential (a Poisson process), and no request waits for an
earlier one. A latency counts from the time at which the request was due, so that a server that falls behind does not
look fast. Each request has one text of random words with a log-normal length, or a line of `--texts`. Without `--rate`
the rate is doubled until the goal fails, then bisected. The goal is reached if 99 % of the answers take at most
`--goal-ms` and at most one request in a thousand failed.

The load generator needs processor time too: run it on another machine for exact numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_COMMON = (
    "the of and a to in is it was for on with as his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some "
    "so these would other into has more her two like him see time could no make than first been its who now "
    "people my made over did down only way find use may water long little very after words called just where "
    "most know"
)  # one token each in almost every vocabulary
WORDS = _COMMON.split()
FIELDS = {"/generate": "prompt", "/v1/embeddings": "input"}  # of the text; "text" for other routes
NO_ANSWER, NOT_SENT = "no answer", "not sent"
MAX_OPEN = 1000  # requests in progress; above it they are not sent, which counts as an error

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Workload:
    """What is sent: to which route, which texts or how long they are, and the model's name."""

    route: str = "/embed"
    texts: Sequence[str] = ()  # in random order; random words if empty
    mean_tokens: float = 24.0
    sigma: float = 0.6  # of the logarithm of the length
    model: str | None = None

    def bodies(self, seed: int) -> Iterator[bytes]:
        """Bodies without end, the same for the same seed."""
        rng = random.Random(seed)
        named = {} if self.model is None else {"model": self.model}
        while True:
            text = rng.choice(self.texts) if self.texts else self._words(rng)
            yield json.dumps({FIELDS.get(self.route, "text"): text, **named}).encode()

    def _words(self, rng: random.Random) -> str:
        """Random words; the mean of their number is `mean_tokens`."""
        center = math.log(self.mean_tokens) - self.sigma**2 / 2
        count = max(1, round(rng.lognormvariate(center, self.sigma)))
        return " ".join(rng.choices(WORDS, k=count))


@dataclass
class AsyncConnections:
    """Connections to one server that stay open. `post` opens as many as are needed at once."""

    url: str
    idle: list[Connection] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise SystemExit(f'"{self.url}" is not the address of a server, such as http://127.0.0.1:8000')
        self.host, self.port, self.prefix = parts.hostname, parts.port or 80, parts.path.rstrip("/")
        self.head = f"Host: {parts.netloc}\r\nContent-Type: application/json"

    async def post(self, route: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of an answer. Raises OSError where there is none."""
        head = f"POST {self.prefix}{route} HTTP/1.1\r\n{self.head}\r\nContent-Length: {len(body)}\r\n\r\n"
        data = head.encode() + body
        while self.idle:
            connection = self.idle.pop()
            with suppress(OSError, EOFError):  # closed by the server in the meantime
                return await self._exchange(connection, data)
        try:
            return await self._exchange(await asyncio.open_connection(self.host, self.port), data)
        except EOFError as error:
            raise ConnectionResetError("the server closed the connection") from error

    async def _exchange(self, connection: Connection, data: bytes) -> tuple[int, bytes]:
        reader, writer = connection
        try:
            writer.write(data)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            answer = await _body(reader, head)
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in head:
            writer.close()
        else:
            self.idle.append(connection)
        return int(head.split(None, 2)[1]), answer

    async def close(self) -> None:
        for _, writer in self.idle:
            writer.close()
        self.idle.clear()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return await reader.readexactly(int(value))
    parts = []
    while size := int(await reader.readline() or b"0", 16):  # chunked
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


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


@dataclass
class LoadTest:
    """The settings of a test. Every rate has its own texts."""

    url: str
    workload: Workload
    seconds: float = 10.0
    timeout: float = 30.0
    seed: int = 0

    def measure(self, rate: float) -> LoadResult:
        """What becomes of requests at a rate."""
        self.seed += 2
        results = asyncio.run(self._run(rate))
        return summarize(results, rate=rate, seconds=self.seconds)

    async def _run(self, rate: float) -> list[RequestResult]:
        """Send requests for some seconds, and wait for the answers."""
        connections = AsyncConnections(self.url)
        rng, bodies = random.Random(self.seed), self.workload.bodies(self.seed + 1)
        started = time.monotonic()
        tasks: set[asyncio.Task[None]] = set()
        results: list[RequestResult] = []

        async def send(due: float) -> None:
            status = await self._status(connections, next(bodies))
            results.append(RequestResult(due, time.monotonic() - started - due, status))

        due = rng.expovariate(rate)
        while due < self.seconds:
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
        await connections.close()
        return results

    async def _status(self, connections: AsyncConnections, body: bytes) -> str:
        try:
            async with asyncio.timeout(self.timeout):
                return str((await connections.post(self.workload.route, body))[0])
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


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="address of the server")
    parser.add_argument("--route", default="/embed", help="route to ask, with one text per request")
    parser.add_argument("--rate", type=float, nargs="+", help="requests per second; the best rate is searched for")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each rate")
    parser.add_argument("--goal-ms", type=float, default=100.0, help="milliseconds that 99 %% of the answers may take")
    parser.add_argument("--texts", type=Path, help="file with one text per line, in place of random words")
    parser.add_argument("--mean-tokens", type=float, default=24.0, help="mean length of the random texts in words")
    parser.add_argument("--sigma", type=float, default=0.6, help="standard deviation of the logarithm of the lengths")
    parser.add_argument("--model", help="name of the model on the server")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds to wait for an answer")
    parser.add_argument("--seed", type=int, default=0, help="of the times and texts")
    parser.add_argument("--out", type=Path, help="file for the numbers as JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    lines = args.texts.read_text(encoding="utf-8").splitlines() if args.texts else []
    texts = [line for line in lines if line.strip()]
    workload = Workload(args.route, texts, args.mean_tokens, args.sigma, args.model)
    test = LoadTest(args.url, workload, seconds=args.seconds, timeout=args.timeout, seed=args.seed)

    def measure(rate: float) -> LoadResult:
        one = test.measure(rate)
        errors = ", ".join(f"{status}: {count}" for status, count in sorted(one.errors.items())) or "none"
        print(
            f"{rate:8.1f}/s: {one.throughput:.1f} answers/s, p50 {one.p50_ms:.1f} ms, p95 {one.p95_ms:.1f} ms, "
            f"p99 {one.p99_ms:.1f} ms, {one.requests} requests, errors: {errors}",
            flush=True,
        )
        return one

    if args.rate:
        results = [measure(rate) for rate in args.rate]
    else:
        results = search_rate(measure, goal_ms=args.goal_ms)
    best = best_rate(results, goal_ms=args.goal_ms)
    print(f"highest rate with p99 below {args.goal_ms:g} ms: {'none' if best is None else f'{best:.1f}/s'}")
    if args.out is not None:
        values = {"url": args.url, "route": args.route, "goal_ms": args.goal_ms, "best_rate": best}
        values["results"] = [dataclasses.asdict(one) for one in results]
        args.out.write_text(json.dumps(values, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
