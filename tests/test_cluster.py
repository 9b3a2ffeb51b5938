"""Rows in shards on a cluster: `--ray` of predict and embed, with a pool in this process or on a local cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.answers import assert_same
from tests.cli.helpers import Capture, run

import regard
from regard.cluster import bulk
from regard.cluster.ray_pool import RayPool, ShardWorker
from regard.cluster.shards import ComputedShard, Shard, ShardFolder, make_shards, run_shards
from regard.errors import FolderError, InputError

ITEMS = [f"text {number}" for number in range(25)]
TEXTS = [f"a lovely film {number}" for number in range(60)]


def upper(shards: Iterator[Shard]) -> Iterator[ComputedShard]:
    for shard in shards:
        yield shard, [{"text": item.upper()} for item in shard.items]


def rows(folder: Path) -> list[dict[str, Any]]:
    parts = sorted(folder.glob("part-*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def test_every_row_is_written_once(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "out", {"model": "m"})
    assert list(run_shards(folder, make_shards(ITEMS, 10), upper)) == [10, 20, 25, 25]
    assert rows(tmp_path / "out") == [{"index": at, "text": item.upper()} for at, item in enumerate(ITEMS)]


def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    def stops(shards: Iterator[Shard]) -> Iterator[ComputedShard]:
        yield from list(upper(shards))[1:2]
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        list(run_shards(ShardFolder(out, {"model": "m"}), make_shards(ITEMS, 10), stops))
    with (out / "parts.jsonl").open("a") as file:
        file.write('{"number": 2, "sta')  # killed while it wrote
    computed = []

    def noted(shards: Iterator[Shard]) -> Iterator[ComputedShard]:
        for shard, answers in upper(shards):
            computed.append(shard.number)
            yield shard, answers

    list(run_shards(ShardFolder(out, {"model": "m"}), make_shards(ITEMS, 10), noted))
    assert computed == [0, 2]
    assert [row["index"] for row in rows(out)] == list(range(25))


@pytest.mark.parametrize(
    ("folder", "model", "items", "size", "error", "message"),
    [
        ("out", "n", ITEMS, 10, FolderError, "other settings: model"),
        ("out", "m", ITEMS[1:], 10, InputError, "the input has changed"),
        (".", "m", ITEMS, 10, FolderError, "not empty"),
        ("new", "m", ITEMS, 0, InputError, "at least 1"),
    ],
)
def test_other_settings_and_rows_are_errors(
    tmp_path: Path, folder: str, model: str, items: list[str], size: int, error: type[Exception], message: str
) -> None:
    list(run_shards(ShardFolder(tmp_path / "out", {"model": "m"}), make_shards(ITEMS, 10), upper))
    with pytest.raises(error, match=message):
        list(run_shards(ShardFolder(tmp_path / folder, {"model": model}), make_shards(items, size), upper))


class LocalPool:
    """A pool in this process."""

    def __init__(self, arguments: tuple[Any, ...], *, workers: int) -> None:
        self.worker = ShardWorker(*arguments)

    def compute(self, shards: Iterator[Shard]) -> Iterator[ComputedShard]:
        return ((shard, self.worker.compute(list(shard.items))) for shard in shards)

    def close(self) -> None:
        pass


def test_a_folder_of_parts(capsys: Capture, monkeypatch: pytest.MonkeyPatch, trained: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(bulk, "RayPool", LocalPool)
    texts = TEXTS[:7]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    arguments = ("--input", tmp_path / "texts.txt", "--ray", "--shard-rows", 3, "--device", "cpu", "--json")
    model = regard.load(trained, device="cpu")
    code, out, err = run(capsys, "predict", trained, *arguments, "--output", tmp_path / "answers")
    assert code == 0, err
    assert json.loads(out) == {"rows": 7, "output": str(tmp_path / "answers"), "parts": 3}
    expected = [{"index": at, **answer.json()} for at, answer in enumerate(model.predict(texts))]
    assert_same(rows(tmp_path / "answers"), expected)
    code, out, _ = run(capsys, "embed", trained, *arguments, "--output", tmp_path / "vectors", "--normalize")
    assert code == 0
    assert [row["embedding"] for row in rows(tmp_path / "vectors")] == model.embed(texts, normalize=True).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "a", "text", "--ray"), "--ray writes a folder"),
        (("predict", "a", "--ray", "--input", "x.txt", "--output", "a.csv"), "--ray writes a folder"),
        (("embed", "a", "text", "--ray", "--output", "out"), "--input FILE"),
        (("embed", "a", "--input", "x.txt", "--ray", "--output", "out", "--pooling", "none"), "contradict"),
    ],
)
def test_wrong_use(capsys: Capture, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err


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
    expected = [answer.json() for answer in regard.load(trained, device="cpu").predict(TEXTS)]
    assert rows(tmp_path / "out") == [{"index": at, **answer} for at, answer in enumerate(expected)]
