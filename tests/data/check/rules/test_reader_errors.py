"""Errors of the reader become findings of a fitting kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.check.examples import rows
from tests.data.helpers import write_file

from regard.data.check.collect import FindingCollector
from regard.data.check.rules.reader_errors import add_reader_error, finding_kind
from regard.data.readers import read
from regard.errors import DataError


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.csv", rows() + "a,b,c\n", "wrong-columns"),
        ("a.csv", rows() + '"open,pos\n', "unbalanced-quotes"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": \n', "not-json"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": null, "label": "x"}\n', "missing-value"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"label": "x"}\n', "missing-value"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "\\ud83d", "label": "x"}\n', "surrogate"),
    ],
)
def test_kind_of_an_error(tmp_path: Path, name: str, content: str, kind: str) -> None:
    errors: list[DataError] = []
    assert list(read(write_file(tmp_path / name, content), on_bad=errors.append))
    assert [finding_kind(error) for error in errors] == [kind]


def test_finding_has_column_expectation_and_fix() -> None:
    collector = FindingCollector()
    error = DataError("is odd", file="a.csv", line=3, column="stars", expected="1 to 5", fix="Correct it.")
    add_reader_error(collector, error, "train")
    (finding,) = collector.findings()
    assert (finding.message, finding.fix) == ("column stars: is odd; expected 1 to 5", "Correct it.")
