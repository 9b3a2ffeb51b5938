"""Public data sets are checked in less than a minute each, with known findings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regard.data.check.finding import CheckReport
from regard.data.check.run import check

SHARED = Path(os.environ.get("REGARD_SHARED_DATA", Path(__file__).parents[3].parent / "shared" / "data"))

# set, rows, and the counts of some findings that were looked at by hand
SETS = [
    ("imdb", 25_000, {"duplicate": 96}),
    ("sst2", 67_349, {"label-conflict": 133, "duplicate": 366}),
    ("conll2003", 17_291, {"leak": 185, "label-conflict": 3}),
    ("squad", 87_599, {"duplicate": 96, "answer-inside-word": 126}),
    ("eng_spa", 115_384, {"near-leak": 89, "length-mismatch": 1}),
]


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows", "counts"), SETS)
def test_a_public_set_in_less_than_a_minute(name: str, rows: int, counts: dict[str, int]) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"{SHARED / name} is not there: public sets are not part of the project")
    report: CheckReport = check(SHARED / name)
    results = {finding.kind: finding.count for finding in report.findings}
    assert report.rows == rows
    assert report.seconds < 60
    assert {kind: results.get(kind) for kind in counts} == counts
