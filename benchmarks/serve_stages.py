"""Stages of `serve.py` that try to break the server: soak, fuzz, faults, coldstart."""

from __future__ import annotations

import asyncio
import compileall
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from load_test import AsyncConnections, Workload
from serve_process import SOURCE, RunningServer, cpu_seconds, environment, regard_server

import regard

ALLOWED = {200, 204, 400, 401, 404, 405, 408, 413, 422, 429, 431, 503}
BAD_BODIES = (b'{"text": 5}', b'{"txt": "a"}', b"{", b'{"text": " "}', b'{"text": "a", "model": "none"}', b"[]")


def texts_of(mean: float, count: int, seed: int = 0) -> list[str]:
    return [json.loads(body)["text"] for body in itertools.islice(Workload(mean_tokens=mean).bodies(seed), count)]


class Soak:
    """Requests above capacity with bad ones and clients that leave; every good answer is compared with `predict`."""

    def __init__(self, server: RunningServer, classifier: str) -> None:
        self.server = server
        mixed = [*texts_of(24, 150), *texts_of(128, 40, 1), *texts_of(900, 4, 2)]
        labels = [answer.json() for answer in regard.load(classifier, device="cpu").predict(mixed)]
        vectors = regard.load("minilm", device="cpu").embed(mixed).tolist()
        classifier_name = Path(classifier).name
        self.requests = [
            ("/predict", {"text": text, "model": classifier_name}, answer)
            for text, answer in zip(mixed, labels, strict=True)
        ] + [
            ("/embed", {"text": text, "model": "minilm"}, {"embedding": vector})
            for text, vector in zip(mixed, vectors, strict=True)
        ]
        self.statuses: Counter[str] = Counter()
        self.wrong = 0
        self.rng = random.Random(0)

    def capacity(self, seconds: float = 8.0) -> float:
        """Good answers per second with 32 requests in progress."""
        asyncio.run(self._closed(seconds))
        rate = self.statuses["200"] / seconds
        self.statuses.clear()
        return rate

    async def _closed(self, seconds: float) -> None:
        connections, end = AsyncConnections(self.server.url), time.monotonic() + seconds

        async def client() -> None:
            while time.monotonic() < end:
                await self._one(connections)

        await asyncio.gather(*(client() for _ in range(32)))
        await connections.close()

    async def _one(self, connections: AsyncConnections) -> None:
        route, body, expected = self.rng.choice(self.requests)
        status, data = await connections.post(route, json.dumps(body).encode())
        self.statuses[str(status)] += 1
        if status == 200:
            answer = json.loads(data)["answers"][0]
            if any(answer[name] != value for name, value in expected.items()):
                self.wrong += 1

    async def open_loop(self, rate: float, seconds: float) -> None:
        connections, started = AsyncConnections(self.server.url), time.monotonic()
        tasks: set[asyncio.Task[None]] = set()
        due = 0.0
        while due < seconds:
            await asyncio.sleep(max(0.0, started + due - time.monotonic()))
            if len(tasks) < 800:
                task = asyncio.create_task(self._any(connections))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            due += self.rng.expovariate(rate)
        await asyncio.wait(tasks)
        await connections.close()

    async def _any(self, connections: AsyncConnections) -> None:
        draw = self.rng.random()
        try:
            async with asyncio.timeout(120):
                if draw < 0.02:
                    status, _ = await connections.post("/predict", self.rng.choice(BAD_BODIES))
                    self.statuses[f"bad: {status}"] += 1
                elif draw < 0.07:
                    await self._leave(connections)
                else:
                    await self._one(connections)
        except (OSError, EOFError, TimeoutError) as error:
            self.statuses[type(error).__name__] += 1

    async def _leave(self, connections: AsyncConnections) -> None:
        """Send a request and close the connection before the answer."""
        route, body, _ = self.rng.choice(self.requests)
        other = AsyncConnections(self.server.url)
        try:
            async with asyncio.timeout(self.rng.uniform(0.001, 0.05)):
                await other.post(route, json.dumps(body).encode())
        except (TimeoutError, OSError):
            self.statuses["left"] += 1
        await other.close()


def soak(classifier: str, minutes: float, work: Path) -> dict[str, Any]:
    """Three times the capacity for some minutes; memory, statuses and wrong answers."""
    with regard_server(classifier, "minilm", "--device", "cpu", log=work / "soak.log") as server:
        server.wait_ready()
        test = Soak(server, classifier)
        capacity = test.capacity()
        asyncio.run(test.open_loop(3 * capacity, 60 * min(5.0, minutes / 4)))  # queues and caches reach their sizes
        test.statuses.clear()
        before = server.memory()
        asyncio.run(test.open_loop(3 * capacity, 60 * minutes))
        time.sleep(2)
        after = server.memory()
        growth = after / before - 1
        statuses = dict(sorted(test.statuses.items()))
        known = {str(status) for status in (200, 429, 503)} | {"left"}
        unexpected = {
            name: count
            for name, count in statuses.items()
            if name not in known
            and not (name.startswith("bad: ") and name[5:] in {"400", "404", "413", "422", "429", "503"})
        }
        ready = server.get("/ready")
        return {
            "minutes": minutes,
            "capacity_per_second": round(capacity, 1),
            "statuses": statuses,
            "unexpected": unexpected,
            "wrong_answers": test.wrong,
            "memory_mb": [round(value / 1e6, 1) for value in (before, after)],
            "memory_growth": round(growth, 4),
            "ok": not unexpected and not test.wrong and growth < 0.01 and ready == 200,
        }


def http_request(body: bytes, route: bytes = b"/predict", headers: bytes = b"Connection: close\r\n") -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (
        route, headers, len(body), body,
    )  # fmt: skip


def deep(rng: random.Random) -> bytes:
    depth = rng.choice([10, 1000, 100_000])
    return http_request(b'{"text":' + b"[" * depth + b"]" * depth + b"}")


def random_json(rng: random.Random) -> bytes:
    values: list[Any] = [None, True, -1, 1e308, 10**400, "", "a" * 5000, "\ud800", "\x00", [], {}, [["a"]], {"a": "b"}]
    names = ["text", "texts", "model", "abstain", "on_error", "layer", "top", "question", "context", "stream", "x" * 99]
    body = {rng.choice(names): rng.choice(values) for _ in range(rng.randint(0, 4))}
    routes = [b"/predict", b"/embed", b"/fill", b"/answer", b"/translate", b"/generate", b"/explain", b"/tokenize"]
    routes += [b"/v1/embeddings", b"/models/none", b"/look/x", b"/%ff%00"]
    return http_request(json.dumps(body).encode(), rng.choice(routes))


def chunked(rng: random.Random) -> bytes:
    head = b"POST /predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b'{"text":"a film"}'
    good = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    return head + rng.choice([good, b"zz\r\nxx", b"5\r\nab", b"ffffffffffff\r\na", b"0\r\n\r\n"])


def raw_bytes(rng: random.Random) -> bytes:
    return rng.choice([b"", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"POST /predict HTTP/9.9\r\n\r\n"]) + rng.randbytes(
        rng.randint(1, 300)
    )


def broken_json(rng: random.Random) -> bytes:
    body = bytearray(b'{"texts": ["a film", "\\ud83d", "b"], "model": null, "abstain": 1e999}')
    for _ in range(rng.randint(1, 6)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return http_request(bytes(body))


def large_headers(rng: random.Random) -> bytes:
    return http_request(
        b"{}", headers=b"Connection: close\r\nX-Long: " + b"x" * rng.choice([100, 20_000, 300_000]) + b"\r\n"
    )


def pipelined(rng: random.Random) -> bytes:
    body = b'{"text": "a film"}'
    return b"".join(http_request(body, headers=b"") for _ in range(rng.randint(1, 8))) + http_request(body)


def wrong_length(rng: random.Random) -> bytes:
    length = rng.choice([b"-1", b"x", b"99999999999999999999", b"3", b"1e3"])
    return b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + b"\r\n\r\n{}"


FUZZERS: tuple[Callable[[random.Random], bytes], ...] = (
    deep, random_json, random_json, random_json, chunked, raw_bytes, broken_json, large_headers, pipelined,
    wrong_length,
)  # fmt: skip
INCOMPLETE = (chunked, raw_bytes, wrong_length)  # the server would wait for more


class Fuzz:
    """Sends what no client should send. Each connection must be answered or closed in time."""

    def __init__(self, url: str) -> None:
        self.port = int(url.rpartition(":")[2])
        self.statuses: Counter[str] = Counter()
        self.bad: list[str] = []

    def run(self, count: int, threads: int = 8) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(self._one, range(count), chunksize=64))

    def _one(self, number: int) -> None:
        rng = random.Random(number)
        make = rng.choice(FUZZERS)
        data = make(rng)
        slow = number % 500 == 499
        try:
            answer = self._exchange(data, slow=slow, end=make in INCOMPLETE)
        except TimeoutError:
            self.bad.append(f"{number} {make.__name__}: no answer")
            return
        except OSError:
            self.statuses["reset"] += 1
            return
        for status in statuses_of(answer) or ["closed"]:
            self.statuses[status] += 1
            if status.startswith("5") and status != "503":
                self.bad.append(f"{number} {make.__name__}: {status}")

    def _exchange(self, data: bytes, *, slow: bool, end: bool) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            if slow:
                for start in range(0, min(len(data), 60), 6):
                    connection.sendall(data[start : start + 6])
                    time.sleep(0.05)
                data = data[60:]
            try:
                connection.sendall(data)
                if end:
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
            return answer


def statuses_of(answer: bytes) -> list[str]:
    return [part[:3].decode() for part in answer.split(b"HTTP/1.1 ")[1:]]


def fuzz(classifier: str, requests: int, work: Path, schemathesis: str | None) -> dict[str, Any]:
    """The own fuzzer, then schemathesis where it is installed."""
    arguments = (classifier, "--device", "cpu", "--request-seconds", "20", "--header-seconds", "5")
    with regard_server(*arguments, log=work / "fuzz.log") as server:
        server.wait_ready()
        test = Fuzz(server.url)
        test.run(max(200, requests // 10))
        before = server.memory()
        test.run(requests)
        time.sleep(1)
        after = server.memory()
        result: dict[str, Any] = {
            "requests": requests,
            "statuses": dict(sorted(test.statuses.items())),
            "bad": test.bad[:20],
            "memory_mb": [round(value / 1e6, 1) for value in (before, after)],
            "answers_after": server.post("/predict", {"text": "a film"})[0],
        }
        if schemathesis is not None:
            command = [schemathesis, "run", f"{server.url}/openapi.json", "--checks", "not_a_server_error"]
            command += ["--max-examples", str(max(10, requests // 200)), "--exclude-path", "/models/reload"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            (work / "schemathesis.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
            result["schemathesis"] = {"exit": done.returncode, "last_lines": done.stdout.splitlines()[-12:]}
        result["ok"] = not test.bad and result["answers_after"] == 200
        return result


class Load:
    """Requests in threads, one after the other in each, until it is stopped; counts statuses."""

    def __init__(self, server: RunningServer, threads: int = 8) -> None:
        self.server = server
        self.statuses: Counter[int] = Counter()
        self.stopped = threading.Event()
        self.texts = texts_of(24, 2000)
        self.threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def _ask(self, number: int) -> None:
        for text in itertools.cycle(self.texts[number:]):
            if self.stopped.is_set():
                return
            status, _ = self.server.post("/predict", {"text": text})
            self.statuses[status] += 1
            if status != 200:
                time.sleep(0.02)


def faults(classifier: str, repeats: int, work: Path) -> dict[str, Any]:
    """A killed worker, a reload, SIGTERM and a full disk, all under load."""
    result: dict[str, Any] = {"repeats": repeats}
    with regard_server(classifier, "--device", "cpu", log=work / "faults.log") as server:
        server.wait_ready()
        noticed, recovery = [], []
        with Load(server) as load:
            for _ in range(repeats):
                time.sleep(0.5)
                started = time.monotonic()
                os.kill(server.worker(), signal.SIGKILL)
                while server.get("/ready") == 200:
                    time.sleep(0.002)
                noticed.append(time.monotonic() - started)
                server.wait_ready()
                recovery.append(time.monotonic() - started)
            time.sleep(0.5)
        result["killed"] = {
            "statuses": dict(load.statuses),
            "ready_false_after_ms": round(1000 * max(noticed), 1),
            "recovery_seconds": [round(min(recovery), 2), round(max(recovery), 2)],
        }
        with Load(server) as load:
            for _ in range(repeats):
                server.post("/models/reload", {}, timeout=120)
        result["reloaded"] = dict(load.statuses)
        with Load(server) as load:
            time.sleep(1)
            server.process.send_signal(signal.SIGTERM)
            code = server.process.wait(60)
        result["terminated"] = {"exit": code, "statuses": dict(load.statuses)}
    with regard_server(classifier, "--device", "cpu", log=Path("/dev/full")) as server:
        server.wait_ready()
        result["log_full"] = [server.post("/predict", {"text": "a film"})[0] for _ in range(20)].count(200)
    result["ok"] = (
        set(result["killed"]["statuses"]) <= {200, 503}
        and result["killed"]["ready_false_after_ms"] < 1000
        and set(result["reloaded"]) <= {200}
        and result["terminated"]["exit"] == 0
        and set(result["terminated"]["statuses"]) <= {200, 503, 0}
        and result["log_full"] == 20
    )
    return result


def coldstart(repeats: int, work: Path) -> dict[str, Any]:
    """Seconds from the start of the process to the first vector, processor time, and memory when idle."""
    rows = []
    compiled = compiled_source(work / "installed")
    for engine in ("int8", "torch"):
        for _ in range(repeats):
            started = time.monotonic()
            arguments = ("minilm", "--engine", engine, "--device", "cpu")
            with regard_server(*arguments, log=work / "cold.log", source=compiled) as server:
                listening = time.monotonic() - started
                while server.post("/embed", {"text": "a film"})[0] != 200:
                    time.sleep(0.02)  # more often would take processor time from the start
                first = time.monotonic() - started
                server_cpu, worker_cpu = (cpu_seconds(pid) for pid in server.pids())
                time.sleep(1)
                megabytes = server.memory() / 1e6
            rows.append(
                {
                    "engine": engine,
                    "listening_s": round(listening, 2),
                    "first_answer_s": round(first, 2),
                    "server_cpu_s": round(server_cpu, 2),
                    "worker_cpu_s": round(worker_cpu, 2),
                    "idle_mb": round(megabytes, 1),
                }
            )
    best = min(row["first_answer_s"] for row in rows if row["engine"] == "int8")
    return {"rows": rows, "load_average": os.getloadavg()[0], "ok": best <= 3}


def compiled_source(folder: Path) -> Path:
    """A copy of the source with its bytecode, which a checkout may not have, but an installed package has."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder, quiet=1)
    return folder


def find_schemathesis(peers: Path) -> str | None:
    """The command of schemathesis, in the environment of the peers or in this one."""
    own = peers / "bin" / "schemathesis"
    return str(own) if own.exists() else shutil.which("schemathesis", path=environment().get("PATH"))
