"""Scores of a model on data: the same in any batches, with little memory, and clear words about wrong rows."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard import cli
from regard.errors import DataError, FolderError, InputError

Write = Callable[..., Path]
Reviews = Callable[..., list[tuple[str, str]]]


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


def test_the_test_split_is_taken(trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    for name, count in (("train", 9), ("valid", 8), ("test", 7)):
        write_rows(tmp_path / f"{name}.csv", reviews(count))
    assert regard.evaluate(trained, tmp_path).rows == 7
    assert regard.evaluate(trained, tmp_path, split="valid").rows == 8
    with pytest.raises(InputError, match=r'no split "tst".*Did you mean "test"'):
        regard.evaluate(trained, tmp_path, split="tst")


def test_a_label_the_model_does_not_know(trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    data = write_rows(tmp_path / "test.csv", [*reviews(20), ("so so", "god")])
    answers = tmp_path / "answers.jsonl"
    answers.write_text("from before")
    with pytest.raises(DataError, match=r'test.csv line 22, column label: the label "god".*Did you mean "good"\?'):
        regard.evaluate(trained, data, output=answers)
    assert answers.read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "test.csv"]


def test_pairs_are_not_for_a_model_of_single_texts(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,label\na warm day,a cold day,good\n")
    with pytest.raises(
        DataError,
        match=r"pairs.csv: no columns for text and label .* were recognized among sentence1, sentence2, label",
    ):
        regard.evaluate(trained, tmp_path / "pairs.csv")


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


def test_a_model_without_a_task(reviews_csv: Path) -> None:
    with pytest.raises(InputError, match=r"a network without a task.*model.embed\(texts\).*regard train"):
        regard.evaluate("minilm", reviews_csv)


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
from regard.evaluation import evaluate
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


def test_classes_and_confusion_are_in_every_output(
    trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews, capsys: pytest.CaptureFixture[str]
) -> None:
    from sklearn.metrics import classification_report, confusion_matrix

    rows = reviews(40, seed=3)
    rows = [*rows, *((text, "bad") for text, label in rows[:6] if label == "good")]  # some rows are wrong for sure
    data = write_rows(tmp_path / "test.csv", rows)
    model = regard.load(trained, device="cpu")
    result = regard.evaluate(model, data)
    gold = [label for _, label in rows]
    predicted = [answer.json()["label"] for answer in model.predict([text for text, _ in rows])]
    theirs = classification_report(gold, predicted, output_dict=True, zero_division=0)
    assert list(result.classes) == ["bad", "good"]
    for name, score in result.classes.items():
        assert (score.precision, score.recall, score.f1, score.support) == pytest.approx(tuple(theirs[name].values()))
    assert result.confusion is not None
    assert result.json()["confusion"]["matrix"] == confusion_matrix(gold, predicted).tolist()
    picture = tmp_path / "confusion.png"
    assert cli.main(["evaluate", str(trained), str(data), "--confusion", str(picture), "--device", "cpu"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert re.search(r"\nclass +precision +recall +f1 +support\nbad +\d\.\d{4} .*\ngood .*\nmacro average", out)
    assert "confusion matrix: rows are true, columns are predicted\n      bad  good\nbad " in out
    assert cli.main(["evaluate", str(trained), str(data), "--json", "--device", "cpu"]) == 0
    stdout = json.loads(capsys.readouterr().out)
    assert stdout["confusion"]["labels"] == ["bad", "good"]
    assert stdout["classes"]["bad"] == asdict(result.classes["bad"])


def test_a_plot_that_is_not_possible_is_refused_first(
    trained: Path, reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, wrong in (("matrix.txt", "does not end in .png"), ("no/matrix.png", "does not exist")):
        assert cli.main(["evaluate", str(trained), str(reviews_csv), "--confusion", str(tmp_path / name)]) == 1
        assert wrong in capsys.readouterr().err


def test_columns_named_for_the_training_are_remembered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write_rows: Callable[..., Path], reviews: Any
) -> None:
    """Where a file has them; otherwise its columns are recognized by default."""
    folder = tmp_path / "model"
    header = ("text", "opinion", "stars")
    rows = [("nothing", text, label) for text, label in reviews(60)]
    train_csv = write_rows(tmp_path / "train.csv", rows, header)
    test_csv = write_rows(tmp_path / "test.csv", rows[:20], header)
    plain_csv = write_rows(tmp_path / "plain.csv", reviews(20))
    new_csv = write_rows(tmp_path / "new.csv", [("nothing", text) for text, _ in reviews(20)], ("text", "opinion"))
    regard.train(
        train_csv, out=folder, preset="tiny-bert", steps=2, columns={"text": "opinion", "label": 2}, device="cpu"
    )
    assert json.loads((folder / "run.json").read_text())["data"]["columns"] == {"text": "opinion", "label": "stars"}
    result = regard.evaluate(folder, test_csv)
    assert "label=stars, text=opinion" in result.data
    assert result.scores == regard.evaluate(folder, plain_csv).scores
    options = regard.evaluate(folder, test_csv, columns={"text": "text", "label": "stars"})
    assert "(text=text, label=stars)" in options.data
    for path in (new_csv, plain_csv):
        assert cli.main(["predict", str(folder), "--input", str(path), "--json", "--device", "cpu"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:20] == out[20:]


def test_answers_are_written_in_the_format_of_the_name(trained: Path, reviews_csv: Path, tmp_path: Path) -> None:
    regard.evaluate(trained, reviews_csv, output=tmp_path / "a.jsonl")
    regard.evaluate(trained, reviews_csv, output=tmp_path / "a.csv")
    labels = [json.loads(line)["label"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == labels
    with pytest.raises(InputError, match="compressed"):
        regard.evaluate(trained, reviews_csv, output=tmp_path / "a.csv.gz")


def test_format_and_columns_of_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reviews.tsv"
    path.write_text("opinion,rating\n" + "".join(f"text {number},{'ab'[number % 2]}\n" for number in range(20)))
    run = str(tmp_path / "run")
    columns = ["--columns", "text=opinion,label=rating"]
    quick = ["--preset", "tiny-bert", "--steps", "1", "--device", "cpu", "--out", run]
    assert cli.main(["train", str(path), "--format", "csv", *columns, *quick]) == 0
    assert cli.main(["evaluate", run, str(path), "--format", "csv", "--device", "cpu"]) == 0
    assert "20 rows" in capsys.readouterr().out
    assert cli.main(["evaluate", run, str(path), "--format", "cvs", "--device", "cpu"]) == 1
    assert '--format: "cvs" is not known. Did you mean "csv"?' in capsys.readouterr().err
