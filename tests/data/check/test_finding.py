"""A report counts its findings and is printed as JSON with agreed fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.data.check.examples import rows
from tests.data.helpers import write_file

from regard.data.check.finding import CheckReport, Finding, describe_place
from regard.data.check.run import check
from regard.data.records import Place


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


def test_json_has_the_agreed_fields(tmp_path: Path) -> None:
    report = check(write_file(tmp_path / "a.csv", rows(12, ("", "pos")))).as_json()
    assert {"rows", "task", "labels", "findings"} <= set(report)
    assert {"kind", "severity", "line", "message", "fix"} <= set(report["findings"][0])
    assert json.loads(json.dumps(report))["rows"] == 13
