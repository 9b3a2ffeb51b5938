"""The stage `ray` of `serve.py`: replicas, and many rows with a node that is killed, on a local cluster of Ray.

It runs in an environment with ray: `VENV/bin/python benchmarks/serve.py ray`. The model is one of n-grams, trained
on a sample, so that the time is that of Ray and of the server, not of a network.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from load_test import LoadTest, Workload
from serve_process import environment, free_port, regard_server

import regard
from regard.client import Client
from regard.cluster.bulk import run_on_ray
from regard.cluster.ray_serve import deploy, stop
from regard.serve.api_keys import ApiKeys
from regard.serve.settings import ServeLimits

RATE = 20.0  # requests per second at which latencies are compared
CLIENTS = 8  # that ask one after the other


def small_model(work: Path) -> str:
    """A classifier of n-grams: thousands of texts per second on one core."""
    out = work / "ngram"
    if not (out / "config.json").exists():
        data = str(work / "messages.csv")
        for command in (
            ["sample", "messages", "--out", data, "--overwrite"],
            ["train", data, "--out", str(out), "--preset", "ngram", "--overwrite"],
        ):
            subprocess.run([sys.executable, "-m", "regard.cli", *command], check=True, env=environment())
    return str(out.resolve())


@contextmanager
def cluster_of(nodes: int, cpus: int) -> Iterator[tuple[Any, list[Any]]]:
    """A cluster with several nodes on this machine; without its head, which has no processors."""
    ray: Any = importlib.import_module("ray")
    utils: Any = importlib.import_module("ray.cluster_utils")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    others = [cluster.add_node(num_cpus=cpus) for _ in range(nodes)]
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster, others
    finally:
        ray.shutdown()
        cluster.shutdown()


def requests_per_second(url: str, texts: list[str], seconds: float) -> float:
    """Answers per second of clients that ask one text after the other."""
    counts: Counter[int] = Counter()
    end = time.monotonic() + seconds

    def ask(number: int) -> None:
        client = Client(url)
        while time.monotonic() < end:
            client.predict([texts[(number + CLIENTS * counts[number]) % len(texts)]])
            counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts.values()) / seconds


def measured(name: str, url: str, texts: list[str], expected: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    client = Client(url)
    answers = [answer for start in range(0, len(texts), 50) for answer in client.predict(texts[start : start + 50])]
    load = LoadTest(url, Workload("/predict"), seconds=seconds, timeout=20).measure(RATE)
    return {
        "server": name,
        "same_answers": answers == expected,
        "p50_ms": round(load.p50_ms, 2),
        "p99_ms": round(load.p99_ms, 2),
        "errors": sum(load.errors.values()),
        "requests_per_second": round(requests_per_second(url, texts, seconds), 1),
    }


def replicas(folder: str, texts: list[str], work: Path, seconds: float) -> list[dict[str, Any]]:
    """The same requests to the plain server and to replicas on two nodes."""
    expected = [answer.json() for answer in regard.load(folder, device="cpu").predict(texts)]
    with regard_server(folder, "--device", "cpu", log=work / "ray_plain.log") as server:
        server.wait_ready()
        rows = [measured("plain", server.url, texts, expected, seconds)]
    with cluster_of(nodes=2, cpus=4):
        for count in (1, 2, 4):
            url = deploy(
                [folder], ServeLimits(), ApiKeys(), host="127.0.0.1", port=free_port(), replicas=count, cpus=0.5,
                device="cpu",
            )  # fmt: skip
            rows.append(measured(f"ray, {count} replicas", url, texts, expected, seconds))
            stop()
            importlib.import_module("ray.serve").shutdown()
    return rows


def bulk_with_killed_node(folder: str, count: int, work: Path) -> dict[str, Any]:
    """Predict many texts on two nodes, of which one is killed after a quarter of the rows."""
    output = work / f"ray_bulk_{int(time.time())}"
    texts = [f"{text} {number}" for number, text in zip(range(count), _endless_texts(), strict=False)]
    killed_at: list[int] = []
    started = time.monotonic()
    with cluster_of(nodes=2, cpus=1) as (cluster, nodes):

        def kill(progress: Any) -> None:
            if not killed_at and progress.done >= count // 4:
                killed_at.append(progress.done)
                cluster.remove_node(nodes[1], allow_graceful=False)
                cluster.add_node(num_cpus=1)  # as a cluster that scales itself would

        done = run_on_ray(
            folder, "predict", iter(texts), output,
            load_options={"device": "cpu"}, options={}, workers=2, progress=kill,
        )  # fmt: skip
    seconds = time.monotonic() - started
    rows = [json.loads(line) for part in sorted(output.glob("part-*")) for line in part.open(encoding="utf-8")]
    sample = range(0, count, max(1, count // 1000))
    expected = regard.load(folder, device="cpu").predict([texts[index] for index in sample])
    return {
        "rows": done.rows,
        "node_killed_after_rows": killed_at,
        "complete_and_in_order": [row["index"] for row in rows] == list(range(count)),
        "same_answers": [{"index": index, **answer.json()} for index, answer in zip(sample, expected, strict=True)]
        == [rows[index] for index in sample],
        "seconds": round(seconds, 1),
    }


def _endless_texts() -> Iterator[str]:
    for body in Workload(mean_tokens=12).bodies(0):
        yield json.loads(body)["text"]


def ray_stage(count: int, work: Path, seconds: float) -> dict[str, Any]:
    """Rows of the plain server and of replicas, and the bulk prediction."""
    folder = small_model(work)
    texts = [text for _, text in zip(range(500), _endless_texts(), strict=False)]
    rows = replicas(folder, texts, work, seconds)
    bulk = bulk_with_killed_node(folder, count, work)
    ok = all(row["same_answers"] and not row["errors"] for row in rows)
    ok = ok and bulk["complete_and_in_order"] and bulk["same_answers"] and bool(bulk["node_killed_after_rows"])
    return {"rows": rows, "bulk": bulk, "ok": ok}
