from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.cluster.shards import ComputedShard, Shard, ShardFolder, make_shards, run_shards
from regard.errors import FolderError, InputError

ITEMS = [f"text {number}" for number in range(25)]


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


def test_other_settings_and_rows_are_errors(tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(run_shards(ShardFolder(out, {"model": "m"}), make_shards(ITEMS, 10), upper))
    with pytest.raises(FolderError, match="other settings: model"):
        ShardFolder(out, {"model": "n"})
    with pytest.raises(InputError, match="the input has changed"):
        list(run_shards(ShardFolder(out, {"model": "m"}), make_shards(ITEMS[1:], 10), upper))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(FolderError, match="not empty"):
        ShardFolder(tmp_path / "other", {})
    with pytest.raises(InputError, match="at least 1"):
        list(make_shards(ITEMS, 0))
