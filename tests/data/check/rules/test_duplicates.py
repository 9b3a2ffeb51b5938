"""Duplicates within a split and between splits."""

from __future__ import annotations

from pathlib import Path

from tests.data.check.examples import (
    csv_of,
    good,
    rows,
)
from tests.data.helpers import write_file

from regard.data.check.run import check


def test_leaks_and_unknown_labels_between_splits(tmp_path: Path) -> None:
    write_file(tmp_path / "train.csv", rows(30))
    more = [(good(40)[n], "pos") for n in range(33, 38)]
    dev = [
        *more,
        (good()[3], "neg"),
        (good()[4].upper(), "pos"),
        (good(15)[14].replace("asked", "begged"), "pos"),
        ("a barn in Lund", "neutral"),
    ]
    write_file(tmp_path / "valid.csv", csv_of(dev))
    report = check(tmp_path)
    assert [split.name for split in report.splits] == ["train", "valid"]
    results = {finding.kind: finding for finding in report.findings}
    assert (results["leak"].line, results["leak"].severity) == (7, "error")
    assert "line 5 of train.csv (train)" in results["leak"].message
    assert (results["near-leak"].lines, results["near-leak"].count) == ((8, 9), 2)
    assert results["unknown-label"].line == 10
    assert results["unknown-label"].file == str(tmp_path / "valid.csv")
    assert (report.overlaps[0].exact, report.overlaps[0].near, report.overlaps[0].rows) == (1, 2, 9)
    options = check(tmp_path / "train.csv", dev=tmp_path / "valid.csv")
    assert [(one.kind, one.line) for one in options.findings] == [(one.kind, one.line) for one in report.findings]


PLACES = ("Monday", "rainy", "long", "summer")


def test_texts_of_a_template_are_not_near_duplicates(tmp_path: Path) -> None:
    texts = [f"this is the review number {n} of a film that I saw on a {PLACES[n % 4]} evening" for n in range(40)]
    labeled = [(text, "ab"[n % 2]) for n, text in enumerate(texts)]
    write_file(tmp_path / "train.csv", csv_of(labeled[:30]))
    write_file(tmp_path / "valid.csv", csv_of(labeled[30:]))
    assert check(tmp_path).findings == ()
