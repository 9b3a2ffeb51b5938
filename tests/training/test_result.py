"""The result of a training, and of one that had ended before it was resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import FolderError
from regard.metrics.confidence import Score
from regard.training.result import PretrainResult, TrainResult

IDENTITY: dict[str, Any] = {"data": "abc", "start": "tiny-bert", "task": "classify", "tokenizer": ["def"], "lr": 0.1}
RUN: dict[str, Any] = {
    "task": "classify",
    "start": "tiny-bert",
    "tokenizer": ["def"],
    "settings": {"lr": 0.1, "log_every": 5},
    "data": {"train_rows": 40, "dev_rows": 4, "hash": "abc"},
    "scores": {"accuracy": {"value": 0.9, "low": 0.8, "high": 0.95}},
    "done": {"seconds": 1.5, "steps": 10, "tokens": 900, "skipped": 1, "stopped_early": True},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    return tmp_path


def test_the_result_of_a_training_that_has_ended(folder: Path) -> None:
    result = TrainResult.of_finished(folder, IDENTITY)
    assert result == TrainResult(
        task="classify",
        rows=40,
        scores={"accuracy": Score(0.9, 0.8, 0.95)},
        seconds=1.5,
        folder=str(folder),
        steps=10,
        tokens=900,
        skipped=1,
        stopped_early=True,
        tokens_per_second=None,  # folders of earlier versions do not have it
        validation_rows=4,
    )
    assert result.json()["scores"] == {"accuracy": {"value": 0.9, "low": 0.8, "high": 0.95}}
    assert json.loads(json.dumps(result.json())) == result.json()


def test_a_training_that_has_not_ended_has_no_result(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert TrainResult.of_finished(tmp_path_factory.mktemp("empty"), IDENTITY) is None
    (folder / "state").mkdir()
    (folder / "state/state.json").write_text("{}")
    assert TrainResult.of_finished(folder, IDENTITY) is None


@pytest.mark.parametrize("name", IDENTITY)
def test_other_data_or_settings_are_refused(folder: Path, name: str) -> None:
    what = "the data differs" if name == "data" else f"{name}: .* now"
    with pytest.raises(FolderError, match=rf"nothing is left to resume; it had other settings or data \({what}\)"):
        TrainResult.of_finished(folder, {**IDENTITY, name: "other"})


@pytest.mark.parametrize("content", [{}, {**RUN, "done": None}, {**RUN, "scores": {"accuracy": {"value": 1.0}}}])
def test_a_run_json_of_other_content_is_refused(folder: Path, content: dict[str, Any]) -> None:
    (folder / "run.json").write_text(json.dumps(content))
    with pytest.raises(FolderError, match=r"run\.json is not what a training writes. Start over with --overwrite"):
        TrainResult.of_finished(folder, IDENTITY)


def test_a_pretraining_has_a_baseline_and_an_objective(tmp_path: Path) -> None:
    more = {"objective": "mlm", "average": 0.0, "task_settings": {"rate": 0.15}, "sequences": 7}
    more["baseline"] = {"perplexity": 18.0}
    (tmp_path / "run.json").write_text(json.dumps({**RUN, **more, "new_heads": ["masked-token head"]}))
    identity = {**IDENTITY, "objective": "mlm", "average": 0.0, "task": {"rate": 0.15}}
    result = PretrainResult.of_finished(tmp_path, identity)
    assert result is not None
    assert (result.baseline, result.new_heads, result.rows) == ({"perplexity": 18.0}, ("masked-token head",), 7)
    with pytest.raises(FolderError, match="it had other settings"):
        PretrainResult.of_finished(tmp_path, {**identity, "objective": "mlm+nsp"})
