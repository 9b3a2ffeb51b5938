"""Errors of the reader become findings of a fitting kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.check.examples import rows
from tests.data.helpers import write_file

from regard.data.check.collect import FindingCollector
from regard.data.check.kinds import KINDS
from regard.data.check.rules.reader_errors import add_reader_error
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
        ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["O", "O"]}\n{"tokens": ["a"], "tags": ["O", "O"]}\n', "tag-count"),
    ],
)
def test_kind_of_an_error(tmp_path: Path, name: str, content: str, kind: str) -> None:
    errors: list[DataError] = []
    assert list(read(write_file(tmp_path / name, content), on_bad=errors.append))
    assert [error.kind for error in errors] == [kind]


def test_kind_does_not_depend_on_the_message(tmp_path: Path) -> None:
    """A column or a text may contain any words of a message."""
    content = '{"text": "a", "the answer is not at": 1}\n{"text": "a", "the answer is not at": "is not JSON"}\n'
    path = write_file(tmp_path / "a.jsonl", content)
    errors: list[DataError] = []
    options = {"columns": {"text": "text", "label": "the answer is not at"}, "labels": "number"}
    assert list(read(path, on_bad=errors.append, **options))  # type: ignore[arg-type]
    assert [error.kind for error in errors] == ["bad-label"]
    assert all(error.kind in KINDS for error in errors)


def test_finding_has_column_expectation_and_fix() -> None:
    collector = FindingCollector()
    error = DataError("is odd", file="a.csv", line=3, column="stars", expected="1 to 5", fix="Correct it.")
    add_reader_error(collector, error, "train")
    (finding,) = collector.findings()
    assert (finding.message, finding.fix) == ("column stars: is odd; expected 1 to 5", "Correct it.")
