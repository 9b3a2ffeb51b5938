"""The stage `ray` of `serve.py`: many rows with a node that is killed, on a local cluster of Ray.

It runs in an environment with ray: `VENV/bin/python benchmarks/serve.py ray`. The model is one of n-grams, trained
on a sample, so that the time is that of Ray, not of a network.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from load_test import Workload
from serve_process import environment

import regard
from regard.cluster.bulk import run_on_ray


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


def ray_stage(count: int, work: Path) -> dict[str, Any]:
    """The prediction of many rows, and whether it is complete and right."""
    bulk = bulk_with_killed_node(small_model(work), count, work)
    ok = bulk["complete_and_in_order"] and bulk["same_answers"] and bool(bulk["node_killed_after_rows"])
    return {"bulk": bulk, "ok": ok}
