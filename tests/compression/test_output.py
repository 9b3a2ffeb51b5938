"""Results as JSON, the table of the model card, and the picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.compression.output import draw_pareto, history, pareto_front, table_cells, write_chosen
from regard.compression.result import CandidateResult, Compression
from regard.metrics.confidence import Score

SCORE = Score(0.9, 0.88, 0.92)
INT8 = CandidateResult(
    "int8", "int8 products", {"accuracy": SCORE}, SCORE, SCORE, {"24": 3.0}, 100.0, 10, 5, is_chosen=True, holds=True
)


def test_a_candidate_is_read_back() -> None:
    values = json.loads(json.dumps(INT8.json()))
    assert values["kept"] is True
    assert CandidateResult.from_json(values) == INT8
    assert INT8.cost == 3.0
    assert CandidateResult("x", "y").cost == float("inf")


def test_json_has_the_fields_of_the_contract() -> None:
    teacher = CandidateResult("teacher", "teacher", {"accuracy": SCORE})
    result = Compression("classify", "accuracy", 0.99, teacher, (INT8,), "int8", "runs/small", 100, 20)
    values = json.loads(json.dumps(result.json()))
    assert {"teacher", "chosen", "candidates", "folder"} <= values.keys()
    fields = {"name", "method", "scores", "difference", "latency_ms", "texts_per_second", "bytes", "kept"}
    assert fields <= values["candidates"][0].keys()
    assert values["candidates"][0]["difference"] == {"value": 0.9, "low": 0.88, "high": 0.92}
    assert result.chosen_candidate == INT8


def candidate(name: str, score: float, ms: float, **more: Any) -> CandidateResult:
    scores = {"accuracy": Score(score, score - 0.01, score + 0.01)}
    latency = {"1": ms / 2, "24": ms, "128": 3 * ms}
    return CandidateResult(
        name, f"{name} method", scores, Score(-0.001, -0.004, 0.002), None, latency, 50.0, 2_000_000, **more
    )


def compression() -> Compression:
    fast = candidate("fast", 0.89, 2.0, is_chosen=True, holds=True)
    broken = CandidateResult("broken", "x", error="no")
    return Compression(
        "classify", "accuracy", 0.99, candidate("teacher", 0.9, 9.0), (fast, broken), "fast", "f", 100, 20
    )


def test_the_history_lists_what_was_measured() -> None:
    text = history(compression())
    assert "fast (fast method) of a teacher" in text
    assert (
        "| **fast** | 0.8900 (0.8800 to 0.9000) | -0.0010 (-0.0040 to +0.0020) | 1.0 / 2.0 / 6.0 | 50 | 2.0 |" in text
    )
    assert "broken" not in text
    assert table_cells(compression().teacher, "accuracy")[0] == "teacher"


def test_the_front_has_no_beaten_model() -> None:
    fast, slow, worse = candidate("fast", 0.8, 1.0), candidate("slow", 0.9, 5.0), candidate("worse", 0.7, 2.0)
    assert pareto_front([fast, slow, worse], "accuracy") == [fast, slow]


def test_the_chosen_folder_is_written_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text("{}")
    write_chosen(tmp_path / "out", source, compression(), overwrite=False)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"config.json", "compression.json", "pareto.png", "README.md"} <= names
    draw_pareto(compression(), tmp_path / "again.png")
    assert (tmp_path / "again.png").stat().st_size > 1000
