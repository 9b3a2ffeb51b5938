"""Findings are collected by kind, with examples, from hashes of all rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.data.check.examples import good, rows
from tests.data.helpers import write_file

from regard.data.check import kinds
from regard.data.check.collect import MAX_EXAMPLES, FindingCollector, excerpt, quoted
from regard.data.check.finding import SEVERITIES, CheckReport, Finding, describe_place
from regard.data.check.kinds import KINDS
from regard.data.check.row_store import RowStore, stable_hash
from regard.data.check.rules.checked_row import checked_row
from regard.data.check.rules.minhash import BYTES
from regard.data.check.run import check
from regard.data.records import ClassifyRecord, Place


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("a.csv", 3, 2), "line 3, row 2"),
        (Place("a.csv", 3), "line 3"),
        (Place("a.parquet", None, 2), "row 2"),
        (Place("a.csv"), "the file"),
    ],
)
def test_describe_place(place: Place, text: str) -> None:
    assert describe_place(place) == text


def test_count_by_severity() -> None:
    findings = tuple(
        Finding(kind="duplicate", severity=severity, file=None, line=None, row=None, message="", fix="")
        for severity in ("error", "note", "note")
    )
    report = CheckReport(3, 0, None, "", {}, findings)
    assert [report.count(severity) for severity in ("error", "warning", "note")] == [1, 0, 2]


def test_severities_titles_and_fixes() -> None:
    for name, kind in KINDS.items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert kind.severity in SEVERITIES
        assert kind.title[0].islower() or kind.title.split()[0].isupper()
        assert kind.fix.endswith(".")


def test_kinds_that_rules_add_are_known() -> None:
    folder = Path(kinds.__file__).parent
    added = {
        name
        for path in folder.rglob("*.py")
        for name in re.findall(
            r'(?:collector\.add|_add_\w+|self\._add)\(\s*"([a-z-]+)"', path.read_text(encoding="utf-8")
        )
    }
    assert len(added) > 20
    assert added <= set(KINDS)


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


def test_hashes_places_and_excerpts() -> None:
    store = RowStore()
    for line, text in enumerate(["Good soup.", "good soup", "Good soup."], 2):
        store.check_row(checked_row(ClassifyRecord(text, "pos", place=Place("a.csv", line)), "train"))
    assert len(store) == store.sketched_rows == 3
    assert store.input_hashes[0] == store.input_hashes[2] != store.input_hashes[1]
    assert store.normalized_hashes[0] == store.normalized_hashes[1]
    assert store.place(1) == Place("a.csv", 3)
    assert (store.split(1), store.text(1), store.text(3)) == ("train", "good soup", "")
    assert store.sketches().shape == (3, BYTES)


def test_hash_is_stable() -> None:
    assert stable_hash("text") == stable_hash("text") != stable_hash("Text")
    assert stable_hash("\ud83d") > 0
