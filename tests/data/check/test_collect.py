"""Findings are collected by kind, the most severe first, with examples."""

from __future__ import annotations

import json
from pathlib import Path

from tests.data.check.examples import (
    good,
    rows,
)
from tests.data.helpers import write_file

from regard.data.check.collect import MAX_EXAMPLES, FindingCollector, excerpt, quoted
from regard.data.check.run import check
from regard.data.records import Place


def test_findings_are_ordered_by_severity_with_examples(tmp_path: Path) -> None:
    content = rows(12, (good()[2], "pos"), (good()[3], "neg"), ("", "pos"), ("a &amp; b are far away", "neg"))
    report = check(write_file(tmp_path / "a.csv", content))
    assert [finding.severity for finding in report.findings] == ["error", "warning", "note"]
    twice = report.findings[1]
    assert (twice.kind, twice.count, twice.lines) == ("duplicate", 2, (14, 15))
    assert [one.text for one in twice.examples] == [good()[2], good()[3]]
    message = report.as_json()
    assert {"rows", "task", "labels", "findings"} <= set(message)
    assert {"kind", "severity", "line", "message", "fix"} <= set(message["findings"][0])
    assert (message["rows"], message["task"], message["labels"]) == (16, "classify", {"pos": 8, "neg": 8})
    json.dumps(message)


def test_rows_of_one_kind_are_counted_with_the_highest_severity() -> None:
    collector = FindingCollector()
    for line in range(2, 12):
        collector.add("near-duplicate", Place("a.csv", line), f"row {line}", text="x " * 100)
    collector.add("near-duplicate", Place("a.csv", 12), "last", severity="warning")
    (finding,) = collector.findings()
    assert (finding.count, finding.severity, finding.line) == (11, "warning", 2)
    assert finding.message == "11 near-duplicate rows; first: row 2"
    assert len(finding.examples) == MAX_EXAMPLES
    assert finding.examples[0].text.endswith("…")


def test_rows_of_one_key_share_a_message() -> None:
    collector = FindingCollector()
    collector.add("rare-label", Place("a.csv", 2), "one", key="a", count=2)
    collector.add("rare-label", Place("a.csv", 3), "two", key="b", fix="Do it.")
    assert [(one.message, one.count) for one in collector.findings()] == [("one", 2), ("two", 1)]
    assert collector.findings()[1].fix == "Do it."


def test_excerpts_and_quoted_names() -> None:
    assert excerpt("a\n b") == "a b"
    assert excerpt("abcdef", 4) == "abc…"
    assert quoted("abc", 2) == '"a", "b" and 1 more'
