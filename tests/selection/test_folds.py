"""Cross-validation: every row is scored once, by a model that has not seen it, and the final model has seen all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import samples
from regard.comparison.trainings.jobs import run_job
from regard.data.records import ClassifyRecord
from regard.errors import FolderError, InputError
from regard.progress import Progress
from regard.selection.folds import cross_validate, split_folds

Rows = list[dict[str, Any]]


def test_folds_have_equal_sizes_and_labels() -> None:
    records = [ClassifyRecord(f"text {number}", "ab"[number % 2]) for number in range(40)]
    parts = split_folds(list(records), 4, seed=0)
    assert sorted(row for part in parts for row in part) == list(range(40))
    assert [len(part) for part in parts] == [10] * 4
    assert all(sum(records[row].label == "a" for row in part) == 5 for part in parts)


@pytest.mark.parametrize(("count", "message"), [(1, "expected at least 2"), (9, "there are 4 rows")])
def test_a_number_of_folds_that_is_not_possible(count: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        split_folds([ClassifyRecord(f"text {number}", "a") for number in range(4)], count, seed=0)


def test_every_row_is_scored_and_the_model_is_trained_on_all(rows: Rows, tmp_path: Path) -> None:
    events: list[Progress] = []
    result = cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run", progress=events.append)
    assert (result.task, result.rows, len(result.folds)) == ("classify", 60, 3)
    assert result.main == "accuracy"
    assert result.scores["accuracy"].value > 0.8
    assert result.scores["accuracy"].value == pytest.approx(sum(fold["accuracy"] for fold in result.folds) / 3)
    messages = [*(f"fold {number} of 3" for number in (1, 2, 3)), "final training on all 60 rows"]
    assert [event.values["message"] for event in events] == messages
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["data"]["train_rows"] == 60
    assert run["cross_validation"]["folds"] == list(result.folds)
    assert not (tmp_path / "run.folds").exists()
    assert regard.load(tmp_path / "run").predict(["the film was superb"])[0].json()["label"] == "good"
    assert "60" in result._repr_html_()
    assert json.loads(json.dumps(result.json()))["folds"] == list(result.folds)


def test_a_network_is_trained_without_validation_rows(rows: Rows, tmp_path: Path) -> None:
    result = cross_validate(rows, folds=2, preset="tiny-bert", out=tmp_path / "run", epochs=1, device="cpu")
    assert result.rows == 60
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["dev_fraction"] == 0.0


def test_a_stopped_run_goes_on_with_the_folds_that_are_left(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "whole")
    calls: list[Any] = []

    def stops(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_job(*args, **options)

    monkeypatch.setattr("regard.selection.folds.run_job", stops)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run")
    assert (tmp_path / "run.folds").exists()
    again = cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run")
    assert again.folds == whole.folds
    assert again.scores == whole.scores


def test_a_run_that_was_stopped_in_its_final_training_goes_on(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*_: Any, out: Path, **__: Any) -> Any:
        (out / "metrics.jsonl").write_text("")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("regard.selection.folds.train", stops)
        with pytest.raises(KeyboardInterrupt):
            cross_validate(rows, folds=2, preset="ngram", out=tmp_path / "run")
    assert cross_validate(rows, folds=2, preset="ngram", out=tmp_path / "run").rows == 60
    assert not (tmp_path / "run.folds").exists()


def test_other_rows_do_not_go_on(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("regard.selection.folds.run_job", stops)
        with pytest.raises(KeyboardInterrupt):
            cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run")
    with pytest.raises(FolderError, match="differs in: training rows"):
        cross_validate(rows[:50], folds=3, preset="ngram", out=tmp_path / "run")


@pytest.mark.parametrize("options", [{"dev_fraction": 0.2}, {"refit": "yes"}])
def test_there_is_no_other_split(rows: Rows, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="with folds there is no other split"):
        cross_validate(rows, folds=3, preset="tiny-bert", out=tmp_path / "run", **options)


def test_a_folder_with_something_in_it_is_not_touched(rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(FolderError, match="exists and is not empty"):
        cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run")


def test_the_report_and_the_card_have_the_scores_of_the_folds(tmp_path: Path) -> None:
    rows = samples.path("messages")
    result = regard.cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run")
    value = f"{result.scores['accuracy'].value:.4f}"
    for name in ("README.md", "report.html"):
        content = (tmp_path / "run" / name).read_text(encoding="utf-8")
        assert value in content
        assert "456 rows by cross-validation: each by a model that was trained on the other 2 folds" in content
    assert regard.load(tmp_path / "run").predict(["My parcel is late."])
