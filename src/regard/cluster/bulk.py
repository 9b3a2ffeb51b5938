"""All rows of an input on a cluster: `regard predict --ray` and `regard embed --ray`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.cluster.ray_pool import RayPool
from regard.cluster.shards import ShardFolder, make_shards, run_shards
from regard.progress import OnProgress, Progress


@dataclass(frozen=True)
class BulkOutput:
    """What a folder has after a run."""

    rows: int
    output: Path
    parts: int


def run_on_ray(
    model: str,
    kind: str,
    items: Iterable[Any],
    output: Path,
    *,
    load_options: dict[str, Any],
    options: dict[str, Any],
    workers: int = 0,
    shard_rows: int = 1000,
    progress: OnProgress | None = None,
) -> BulkOutput:
    """Compute all items, with `kind` "predict" or "embed", and write them in parts. Continues a run that was stopped.

    load_options: of `regard.load`. options: of `Model.predict` or `Model.embed`.
    """
    settings = {"model": model, "kind": kind, "shard_rows": shard_rows, **load_options, **options}
    folder = ShardFolder(output, settings)
    pool = RayPool((model, kind, load_options, options), workers=workers)
    rows = 0
    try:
        for rows in run_shards(folder, make_shards(items, shard_rows), pool.compute):
            if progress is not None:
                progress(Progress("rows", rows))
    finally:
        pool.close()
    return BulkOutput(rows, output, len(folder.done))
