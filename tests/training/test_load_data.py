"""Loading labeled data for a training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.training.helpers import Reviews, Write, train

import regard
from regard import samples
from regard.errors import DataError, InputError
from regard.training.load_data import default_dev_fraction, load_data
from regard.training.output.metrics_log import TrainingEvent


def test_what_was_read_is_taken_as_it_is() -> None:
    read = load_data(samples.path("messages"), seed=3)
    assert load_data(read) is read
    assert load_data(read, task="classify", labels=None, dev_fraction=0.5) is read


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"dev": "dev.csv"}, "dev"),
        ({"columns": {"text": "a"}}, "columns"),
        ({"skip_bad": "bad.txt"}, "skip_bad"),
        ({"labels": "multi"}, "labels"),
        ({"task": "tag"}, "task"),
    ],
)
def test_what_would_read_it_otherwise_is_refused(options: dict[str, Any], name: str) -> None:
    read = replace(load_data(samples.path("messages")), dev=[])
    with pytest.raises(InputError, match=f"read already.*{name}"):
        load_data(read, **options)


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


def test_one_article_cannot_be_split(tmp_path: Path) -> None:
    questions = [
        {"id": str(number), "question": f"who came {number}?", "answers": [{"text": "Ida", "answer_start": 0}]}
        for number in range(20)
    ]
    article = {"title": "visits", "paragraphs": [{"context": "Ida came.", "qas": questions}]}
    (tmp_path / "one.json").write_text(json.dumps({"version": "1.1", "data": [article]}))
    with pytest.raises(
        InputError, match=r"10 % of these 20 rows cannot be split off.*of one document.*with dev; dev_fraction=0"
    ):
        train(tmp_path / "one.json", tmp_path / "run")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([{"text": f"word {n}", "label": "ab"[n % 2]} for n in range(4)], "4 rows are too few to split 10 % off"),
        ([{"text": f"word {n}", "label": "a"} for n in range(4)], "one label only"),
        ([{"text": "ab"[n % 2], "label": f"label {n}"} for n in range(40)], "rows with equal texts"),
    ],
)
def test_rows_that_cannot_be_split(rows: list[dict[str, str]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_data(rows)


def test_a_label_that_only_dev_has_is_found_before_training(
    tmp_path: Path, reviews_csv: Path, write_rows: Write
) -> None:
    dev = write_rows(tmp_path / "dev.csv", [("some other text", "good"), ("and one more", "goood")])
    events: list[TrainingEvent] = []
    with pytest.raises(DataError, match=r'dev.csv line 3, column label: the label "goood".*Did you mean "good"\?'):
        train(reviews_csv, tmp_path / "run", dev=dev, progress=events.append)
    assert events == []


def test_a_dev_set_that_is_the_training_set(tmp_path: Path, reviews_csv: Path) -> None:
    with pytest.raises(InputError, match="80 of 80 validation rows are also in the training data"):
        train(reviews_csv, tmp_path / "run", dev=reviews_csv)


def test_a_few_rows_in_both_are_reported(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = reviews(40)
    data = write_rows(tmp_path / "train.csv", rows)
    dev = write_rows(tmp_path / "dev.csv", [*reviews(20, seed=1), rows[0]])
    with pytest.warns(UserWarning, match="1 of 21 validation rows are also in the training data"):
        train(data, tmp_path / "run", dev=dev, steps=1, epochs=None)


def test_format_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    path.write_text("text,label\n" + "".join(f"text {number},{'ab'[number % 2]}\n" for number in range(20)))
    with pytest.raises(DataError):
        load_data(path)
    assert load_data(path, format="csv").task == "classify"
    result = regard.train(path, format="csv", out=tmp_path / "run", preset="tiny-bert", device="cpu", steps=1)
    assert result.rows == 18
    assert regard.evaluate(tmp_path / "run", path, format="csv").rows == 20


@pytest.mark.parametrize(("name", "content"), [("a.txt", "one text\n\nanother text\n"), ("a.csv", "text\none\ntwo\n")])
def test_texts_without_labels_are_an_error(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=r"has texts without labels .*; expected rows with .*Use regard pretrain"):
        load_data(tmp_path / name)
    assert load_data(tmp_path / name, task="masked", dev_fraction=0).task == "masked"


@pytest.mark.parametrize(
    ("task", "content", "columns"),
    [
        ("classify", "text,opinion\na,b\n", "text, opinion"),
        ("pair", "sentence1,sentence2,opinion\na,b,c\n", "sentence1, sentence2, opinion"),
    ],
)
def test_a_missing_label_column_is_named(task: str, content: str, columns: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    message = rf"rows\.csv: no column for the label was recognized; the columns are: {columns}\. If one of them"
    with pytest.raises(DataError, match=message):
        load_data(path, task=task)
    assert load_data(path, task=task, columns={"label": "opinion"}, dev_fraction=0).task == task


def test_validation_rows_grow_more_slowly_than_the_data() -> None:
    few, some, many = (round(default_dev_fraction(rows) * rows) for rows in (20, 1_000, 100_000))
    assert (few, some) == (2, 100)
    assert some < many < 10_000


def test_empty_texts_are_reported(tmp_path: Path) -> None:
    data = tmp_path / "notes.csv"
    data.write_text("text,label\nrain in the morning,a\n,b\nwind from the west,b\n  ,a\n", encoding="utf-8")
    with pytest.warns(
        UserWarning, match=r"2 of 4 rows have an empty text \(the first: .*notes.csv line 3\); regard check"
    ):
        assert len(load_data(data, dev_fraction=0).train) == 4
    data.write_text("first,second,label\nrain,wind,a\nsnow,,b\n ,wind,b\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"2 of 3 rows have an empty text \(the first: .*notes.csv line 3\)"):
        assert len(load_data(data, dev_fraction=0).train) == 3
