"""Lengths in tokens, and rows that exceed the limit of the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.check.examples import (
    good,
    kinds,
    rows,
)
from tests.data.helpers import write_file

from regard.data.check.finding import LengthStatistics, TrainingEstimate
from regard.data.check.rules.lengths import count_with_tokenizer
from regard.data.check.run import TargetModel, check
from regard.text.learn import train_tokenizer


def test_lengths_and_rows_over_the_limit(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", rows(12, ("word " * 300, "pos")))
    corpus = write_file(tmp_path / "corpus.txt", "\n".join(good(30)))
    tokenizer = train_tokenizer([corpus], size=150)
    calls: list[tuple[str, int]] = []

    def forecast(task: str, rows: int, lengths: LengthStatistics, classes: int, split_off: bool) -> TrainingEstimate:
        calls.append((task, rows))
        return TrainingEstimate("tiny", 1000, lengths.total_tokens, 10**6, "this machine", 12.0, 2.0, 5, "much")

    reading = TargetModel(count_with_tokenizer(tokenizer), limit=128, forecast=forecast)
    report = check(path, model=reading)
    assert kinds(report)["too-long"] == 14
    assert report.lengths is not None
    assert report.lengths.max_length > 300
    assert report.lengths.fraction_over_limit == pytest.approx(1 / 13)
    assert sum(report.lengths.counts) == report.lengths.rows == 13
    assert calls == [("classify", 13)]
    assert report.estimate is not None
    assert report.estimate.tokens == report.lengths.total_tokens
    assert check(path).lengths is not None


def test_lengths_of_a_large_file_are_sampled(tmp_path: Path) -> None:
    names = "".join(f"{n} text number {n} of them,{'ab'[n % 2]}\n" for n in range(30_000))
    report = check(write_file(tmp_path / "a.csv", "text,label\n" + names + "30 text number 30 of them,a\n"))
    assert report.rows == 30_001
    assert report.lengths is not None
    assert 5_000 <= report.lengths.rows <= 10_000
    assert kinds(report)["duplicate"] == 30_002
