"""The scores of each class, the confusion matrix and their pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import regard
from regard import cli

Write = Callable[..., Path]
Reviews = Callable[..., list[tuple[str, str]]]


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
