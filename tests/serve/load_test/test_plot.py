from __future__ import annotations

import math
from pathlib import Path

from regard.serve.load_test.load import LoadResult
from regard.serve.load_test.plot import plot_load


def test_a_picture_is_written(tmp_path: Path) -> None:
    results = [
        LoadResult(10, 10, 1, 2, 3, 100, {}),
        LoadResult(20, 0, math.inf, math.inf, math.inf, 100, {"503": 100}),
    ]
    plot_load(results, tmp_path / "load.png", goal_ms=100)
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")
