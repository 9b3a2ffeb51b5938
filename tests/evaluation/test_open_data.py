"""Data is read for a model as its training read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import cli
from regard.errors import DataError, InputError

Write = Callable[..., Path]
Reviews = Callable[..., list[tuple[str, str]]]


def test_the_test_split_is_taken(trained: Path, tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    for name, count in (("train", 9), ("valid", 8), ("test", 7)):
        write_rows(tmp_path / f"{name}.csv", reviews(count))
    assert regard.evaluate(trained, tmp_path).rows == 7
    assert regard.evaluate(trained, tmp_path, split="valid").rows == 8
    with pytest.raises(InputError, match=r'no split "tst".*Did you mean "test"'):
        regard.evaluate(trained, tmp_path, split="tst")


def test_pairs_are_not_for_a_model_of_single_texts(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,label\na warm day,a cold day,good\n")
    with pytest.raises(
        DataError,
        match=r"pairs.csv: no columns for text and label .* were recognized among sentence1, sentence2, label",
    ):
        regard.evaluate(trained, tmp_path / "pairs.csv")


def test_a_model_without_a_task(reviews_csv: Path) -> None:
    with pytest.raises(InputError, match=r"a network without a task.*model.embed\(texts\).*regard train"):
        regard.evaluate("minilm", reviews_csv)


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
