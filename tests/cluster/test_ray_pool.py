"""On a local cluster of two nodes, one of which is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.cluster.ray_pool import RayPool, ShardWorker
from regard.cluster.shards import Shard, ShardFolder, make_shards, run_shards

TEXTS = [f"a lovely film {number}" for number in range(60)]


def test_a_worker_answers_as_predict(trained: Path) -> None:
    worker = ShardWorker(str(trained), "predict", {"device": "cpu"}, {})
    model = regard.load(trained, device="cpu")
    assert worker.compute(TEXTS[:3]) == [answer.json() for answer in model.predict(TEXTS[:3])]
    vectors = ShardWorker(str(trained), "embed", {"device": "cpu"}, {"normalize": True}).compute(TEXTS[:3])
    assert [row["embedding"] for row in vectors] == model.embed(TEXTS[:3], normalize=True).tolist()


def test_a_killed_node_loses_and_repeats_no_row(trained: Path, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster: Any = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        pool = RayPool((str(trained), "predict", {"device": "cpu"}, {}), workers=2, cpus=0.5)
        folder = ShardFolder(tmp_path / "out", {})
        progress = run_shards(folder, make_shards(TEXTS, 5), pool.compute)
        assert next(progress) == 5
        cluster.remove_node(node, allow_graceful=False)
        assert list(progress)[-1] == 60
    finally:
        ray.shutdown()
        cluster.shutdown()
    rows = [
        json.loads(line) for part in sorted((tmp_path / "out").glob("part-*")) for line in part.read_text().splitlines()
    ]
    expected = [answer.json() for answer in regard.load(trained, device="cpu").predict(TEXTS)]
    assert rows == [{"index": at, **answer} for at, answer in enumerate(expected)]
    assert isinstance(next(make_shards(TEXTS, 5)), Shard)
