"""Results as JSON, and back."""

from __future__ import annotations

import json

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
