"""Scores of a model on data: the same in any batches, with little memory, and clear words about wrong rows."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.errors import DataError, FolderError, InputError, SeenRowsWarning

Write = Callable[..., Path]
Reviews = Callable[..., list[tuple[str, str]]]


def test_rows_of_the_training_data_are_noticed(
    trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews
) -> None:
    rows = reviews(12, seed=77)
    model = regard.train(write_rows(tmp_path / "own.csv", rows), preset="ngram", out=tmp_path / "own", dev_fraction=0.0)
    with pytest.warns(SeenRowsWarning, match="12 of 12 rows are also in the training data of the model"):
        regard.evaluate(model.folder, tmp_path / "own.csv")
    new = [(f"{text} again", label) for text, label in rows]
    mixed = write_rows(tmp_path / "mixed.csv", [*rows[:3], *new])
    with pytest.warns(SeenRowsWarning, match="3 of 15 rows are also in the training data"):
        regard.evaluate(model.folder, mixed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regard.evaluate(model.folder, write_rows(tmp_path / "new.csv", new))


def test_scores_are_those_of_the_answers(trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = reviews(50, seed=3)
    data = write_rows(tmp_path / "test.csv", rows)
    model = regard.load(trained, device="cpu")
    result = regard.evaluate(model, data, output=tmp_path / "answers.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [answer["label"] for answer in lines] == [one.json()["label"] for one in model.predict([t for t, _ in rows])]
    right = sum(answer["label"] == label for answer, (_, label) in zip(lines, rows, strict=True))
    accuracy = result.scores["accuracy"]
    assert (result.task, result.rows, result.main) == ("classify", 50, "accuracy")
    assert accuracy.value == right / 50
    assert accuracy.low < accuracy.value <= accuracy.high
    assert result.loss > 0
    before = torch.manual_seed(7).get_state()
    assert regard.evaluate(trained, data, batch_tokens=16).scores == result.scores
    assert torch.equal(torch.get_rng_state(), before)  # what the caller draws goes on as if nothing had been scored


def test_a_label_the_model_does_not_know(trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    data = write_rows(tmp_path / "test.csv", [*reviews(20), ("so so", "god")])
    answers = tmp_path / "answers.jsonl"
    answers.write_text("from before")
    with pytest.raises(DataError, match=r'test.csv line 22, column label: the label "god".*Did you mean "good"\?'):
        regard.evaluate(trained, data, output=answers)
    assert answers.read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "test.csv"]


def test_a_row_without_a_label(trained: Path, tmp_path: Path, write_rows: Write) -> None:
    with pytest.raises(DataError, match=r"line 3.*this row has no label"):
        regard.evaluate(trained, write_rows(tmp_path / "test.csv", [("fine", "good"), ("less so", "")]))


def test_bad_rows_are_written_down_and_skipped(trained: Path, tmp_path: Path) -> None:
    lines = [{"text": "great fun", "label": "good"}, {"text": 7, "label": "good"}, {"text": "cold", "label": "bad"}]
    data = tmp_path / "test.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = regard.evaluate(trained, data, skip_bad=tmp_path / "bad.jsonl")
    assert (result.rows, result.bad) == (2, 1)
    assert json.loads((tmp_path / "bad.jsonl").read_text())["line"] == 2


def test_beams_are_for_translators(trained: Path, reviews_csv: Path) -> None:
    with pytest.raises(InputError, match=r"beams are for models that translate; this is a model for classify"):
        regard.evaluate(trained, reviews_csv, beams=4)


def test_a_place_that_cannot_be_written(trained: Path, reviews_csv: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not exist\. Make it first"):
        regard.evaluate(trained, reviews_csv, output=tmp_path / "no" / "answers.jsonl")


def test_a_full_disk(trained: Path, reviews_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FolderError, match=r"No space left on device\. Nothing was changed"):
        regard.evaluate(trained, reviews_csv, output=tmp_path / "answers.jsonl")
    assert list(tmp_path.iterdir()) == []


MEASURE = """
import resource, sys
from regard.evaluation.evaluate import evaluate
from regard.predict import load
model = load(sys.argv[1], device="cpu")
found = evaluate(model, sys.argv[2], output=sys.argv[3])
print(found.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    """Ten times as many rows, the same memory to a few megabytes; the answers go to their file."""

    def peak(count: int) -> float:
        data = write_rows(tmp_path / f"{count}.csv", reviews(count))
        argv: list[Any] = [sys.executable, "-c", MEASURE, trained, data, tmp_path / "answers.jsonl"]
        message = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
        assert int(message[0]) == count
        return int(message[1]) / 1024

    assert peak(30_000) - peak(3_000) < 16


def test_answers_are_written_in_the_format_of_the_name(trained: Path, reviews_csv: Path, tmp_path: Path) -> None:
    regard.evaluate(trained, reviews_csv, output=tmp_path / "a.jsonl")
    regard.evaluate(trained, reviews_csv, output=tmp_path / "a.csv")
    labels = [json.loads(line)["label"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == labels
    with pytest.raises(InputError, match="compressed"):
        regard.evaluate(trained, reviews_csv, output=tmp_path / "a.csv.gz")
