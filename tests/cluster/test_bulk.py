"""`--ray` with a pool in this process in place of a cluster; tests/cluster/test_ray_pool.py has a real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.answers import assert_same
from tests.cli.helpers import Capture, run

import regard
from regard.cluster import bulk, ray_pool
from regard.cluster.shards import ComputedShard, Shard


class LocalPool:
    def __init__(self, arguments: tuple[Any, ...], *, workers: int) -> None:
        self.worker = ray_pool.ShardWorker(*arguments)

    def compute(self, shards: Iterator[Shard]) -> Iterator[ComputedShard]:
        return ((shard, self.worker.compute(list(shard.items))) for shard in shards)

    def close(self) -> None:
        pass


def test_a_folder_of_parts(capsys: Capture, monkeypatch: pytest.MonkeyPatch, trained: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(bulk, "RayPool", LocalPool)
    texts = [f"a lovely film {number}" for number in range(7)]
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
    expected = model.embed(texts, normalize=True).tolist()
    assert [row["embedding"] for row in rows(tmp_path / "vectors")] == expected


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]


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
