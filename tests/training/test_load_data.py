"""Loading labeled data for a training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import samples
from regard.errors import InputError
from regard.training.load_data import load_data


def test_what_was_read_is_taken_as_it_is() -> None:
    read = load_data(samples.path("messages"), seed=3)
    assert load_data(read) is read
    assert load_data(read, task="classify", labels=None, dev_fraction=0.5) is read


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"dev": "dev.csv"}, "dev"),
        ({"columns": {"text": "a"}}, "columns"),
        ({"skip_bad": "bad.txt"}, "skip_bad"),
        ({"labels": "multi"}, "labels"),
        ({"task": "tag"}, "task"),
    ],
)
def test_what_would_read_it_otherwise_is_refused(told: dict[str, Any], name: str) -> None:
    read = replace(load_data(samples.path("messages")), dev=[])
    with pytest.raises(InputError, match=f"read already.*{name}"):
        load_data(read, **told)


def test_unusable_rows_are_counted_and_printed(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    rows = "".join(f"a good day {number},yes\na bad day {number},no\n" for number in range(10))
    data.write_text(f"text,label\n{rows}only one column\n", encoding="utf-8")
    loaded = load_data(data, skip_bad=tmp_path / "bad.jsonl")
    assert (len(loaded.train) + len(loaded.dev), loaded.bad_rows) == (20, 1)
    lines: list[str] = []
    regard.train(
        data,
        out=tmp_path / "run",
        preset="tiny-bert",
        steps=1,
        device="cpu",
        skip_bad=tmp_path / "bad.jsonl",
        progress=lambda event: lines.extend(event.values.get("lines", ())),
    )
    assert "rows: 1 unusable row skipped, 18 training rows, 2 validation rows (10 % split)" in lines
