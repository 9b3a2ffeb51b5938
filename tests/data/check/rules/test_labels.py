"""Labels: missing, unusual, imbalanced, rare, too many, and numbers far from the others."""

from __future__ import annotations

import pytest

from regard.data.check.collect import FindingCollector
from regard.data.check.finding import Finding
from regard.data.check.rules.checked_row import checked_row
from regard.data.check.rules.labels import LabelRule
from regard.data.records import ClassifyRecord, Place


def findings(labels: list[object], dev: list[object] | None = None) -> dict[str, Finding]:
    collector = FindingCollector()
    rule = LabelRule(collector)
    for split, names in (("train", labels), ("valid", dev or [])):
        for line, label in enumerate(names, 2):
            record = ClassifyRecord("text", label, place=Place(f"{split}.csv", line))  # type: ignore[arg-type]
            rule.check_row(checked_row(record, split))
    rule.finish()
    return {finding.kind: finding for finding in collector.findings()}


@pytest.mark.parametrize(
    ("labels", "kind", "line"),
    [
        (["a", "b", None] * 3, "missing-label", 4),
        (["a", "a", "a"], "single-label", 2),
        ([1.0, 1.0, 1.0], "single-label", 2),
        (["a", "b", "N/A", "a", "b"], "unusual-label", 4),
        (["a"] * 40 + ["b"] * 2, "imbalance", 42),
        (["a"] * 40 + ["b"] * 40 + ["c"], "rare-label", 82),
        (["a"] * 6 + ["b"] * 6 + ["c"], "rare-label", 14),
        ([f"n{number}x" for number in range(60)], "too-many-labels", 2),
        ([float(number % 5) for number in range(40)] + [900.0], "label-outlier", 42),
    ],
)
def test_finding_and_its_line(labels: list[object], kind: str, line: int) -> None:
    assert findings(labels)[kind].line == line


def test_balanced_labels_have_no_findings() -> None:
    assert findings(["a", "b"] * 20) == {}


def test_labels_of_two_splits_are_compared() -> None:
    result = findings(["a", "b", "c"] * 5, ["a", "b", "d"])
    assert result["unknown-label"].message == 'the label "d" occurs in valid, but not in train'
    assert result["label-not-in-split"].message == 'valid has no row with "c"'


def test_totals_and_number_range() -> None:
    rule = LabelRule(FindingCollector())
    for label in ("b", "a", "b"):
        rule.check_row(checked_row(ClassifyRecord("text", label), "train"))
    assert list(rule.total.items()) == [("b", 2), ("a", 1)]
    assert rule.number_range == {}
    for number in (1.0, 3.0):
        rule.check_row(checked_row(ClassifyRecord("text", number), "train"))
    assert rule.number_range == {"min": 1.0, "mean": 2.0, "max": 3.0}
