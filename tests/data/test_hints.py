"""Hints about labels that look like several, or like numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.data.helpers import fields, write_file

from regard import cli
from regard.data.check.run import check
from regard.training.load_data import load_data

COMBINED = ["billing", "login", "refund", "billing, login", "login, refund", "billing, login, refund"]


def combined(tmp_path: Path) -> Path:
    rows = [f"text number {number}\t{COMBINED[number % len(COMBINED)]}\n" for number in range(24)]
    return write_file(tmp_path / "a.tsv", "text\tlabel\n" + "".join(rows))


def test_combined_labels_get_a_finding_and_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = combined(tmp_path)
    message = 'the 6 labels look like combinations of 3 names separated by ",", such as "billing, login"'
    (results,) = [finding for finding in check(path).findings if finding.kind == "joined-labels"]
    assert (results.severity, results.message) == ("warning", message)
    assert "--labels multi" in results.fix
    with pytest.warns(UserWarning, match=f"{message}. Use --labels multi if"):
        load_data(path)
    assert fields(load_data(path, labels="multi").train, "label")[0] in {
        ("billing",),
        ("login",),
        ("refund",),
        ("billing", "login"),
    }
    load_data(path, labels="class")
    assert not [finding for finding in check(path, labels="class").findings if finding.kind == "joined-labels"]
    assert cli.main(["check", str(path), "--labels", "multi", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == {"login": 16, "billing": 12, "refund": 12}


def test_pairs_with_numbers_get_a_hint(tmp_path: Path) -> None:
    rows = [f"a text {number},another {number},{number / 7:.2f}\n" for number in range(30)]
    path = write_file(tmp_path / "a.csv", "sentence1,sentence2,score\n" + "".join(rows))
    (results,) = [finding for finding in check(path).findings if finding.kind == "similarity"]
    assert (results.severity, results.message) == ("note", "the labels of these pairs are numbers")
    assert "--task embed" in results.fix
    (hint,) = load_data(path).hints
    assert "--task embed" in hint
    assert "\n" not in hint
    assert load_data(path, task="embed").hints == load_data(path, task="pair").hints == ()
    classes = write_file(tmp_path / "b.csv", "sentence1,sentence2,label\n" + "".join(rows).replace(".", ""))
    assert load_data(classes, labels="class").hints == ()


def test_ratings_that_are_read_as_classes_get_a_hint(tmp_path: Path) -> None:
    rows = [f"a text {number},{number % 5 + 1}\n" for number in range(30)]
    path = write_file(tmp_path / "a.csv", "review,stars\n" + "".join(rows))
    (results,) = [finding for finding in check(path).findings if finding.kind == "ratings"]
    message = 'the 5 whole numbers from 1 to 5 in "stars" are read as classes'
    assert (results.severity, results.message) == ("note", message)
    (hint,) = load_data(path).hints
    assert hint.startswith(f"{message}. With --labels number, the model predicts a number")
    assert load_data(path, labels="class").hints == ()
    numbers = load_data(path, labels="number")
    assert numbers.hints == ()
    assert numbers.reason.endswith("; labels are numbers")
    other = write_file(tmp_path / "b.csv", "review,label\n" + "".join(rows))
    assert load_data(other).hints == ()
