"""CLINC's JSON with its splits inside, and TREC's lines of a label and a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.data.fields import fields

import regard
from regard.data.check.run import check
from regard.data.readers import read, split_names
from regard.errors import DataError
from regard.training.load_data import load_data

INTENTS = {"weather": "will it rain on day", "timer": "wake me at hour"}


def rows(count: int, first: int = 0) -> list[list[str]]:
    return [[f"{text} {number}", label] for number in range(first, first + count) for label, text in INTENTS.items()]


CLINC = {
    "oos_val": [["who painted this", "oos"]],
    "val": rows(3, 50),
    "train": rows(20),
    "oos_test": [["how tall is he", "oos"]],
    "test": rows(4, 80),
    "oos_train": [["sing me a song", "oos"], ["what is a noun", "oos"]],
}


@pytest.fixture(params=[None, 1])
def clinc(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "data_full.json"
    path.write_text(json.dumps(CLINC, indent=request.param))
    return path


def found(data: Any, **told: Any) -> list[tuple[str, Any]]:
    return fields(read(data, **told), "text", "label")


def test_clinc_splits_are_read(clinc: Path) -> None:
    assert split_names(clinc) == ("train", "valid", "test")
    train = [tuple(row) for row in (*CLINC["train"], *CLINC["oos_train"])]
    assert found(clinc) == found(clinc, split="train") == train
    assert found(clinc, split="valid") == [tuple(row) for row in (*CLINC["oos_val"], *CLINC["val"])]
    assert found(clinc, split="test") == [tuple(row) for row in (*CLINC["oos_test"], *CLINC["test"])]
    assert str(read(clinc, split="test").schema).endswith("a list for each split; this is test")
    data = load_data(clinc)
    assert (data.task, len(data.train), len(data.dev), data.split_off) == ("classify", 42, 7, False)
    report = check(clinc)
    assert [(split.name, split.rows) for split in report.splits] == [("train", 42), ("valid", 7), ("test", 9)]


def test_splits_of_objects_and_faults_inside(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"train": [{"text": "x", "label": "a"}], "note": 5, "validation": [{"text": "y"}]}))
    assert split_names(path) == ("train", "valid")
    assert found(path) == [("x", "a")]
    path.write_text('{"train": [["x", "a"],\n["y"]], "test": [["z", "b"]]}')
    with pytest.raises(DataError, match="line 2, row 2: is a list; expected an object"):
        found(path)
    with pytest.raises(DataError, match="has no readable row"):
        found(path, split="valid")
    path.write_text('{"train": [["x", "a"], ')
    with pytest.raises(DataError, match="is not JSON"):
        split_names(path)
    for content in ('{"train": 5}', '{"text": "x", "train": ["y"]}', '[{"text": "x", "label": "a"}]'):
        path.write_text(content)
        assert split_names(path) == ()
    assert split_names(tmp_path / "absent.json") == ()


def test_clinc_is_trained_and_its_test_split_scored(clinc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.output.write_run.draw_curves", lambda *_, **__: None)
    out = clinc.parent / "run"
    done = regard.train(clinc, preset="tiny-bert", steps=3, batch_size=8, lr=1e-3, device="cpu", out=out)
    assert done.rows == 42
    assert regard.evaluate(out, clinc).rows == 9
    assert regard.evaluate(out, clinc, split="valid").rows == 7


TREC = [
    "DESC:manner How did the fire begin ?",
    "ENTY:animal What bird sings at night ?",
    "ABBR:exp What does UN stand for ?",
    "DESC:def What is a fjord ?",
]


@pytest.mark.parametrize("name", ["train_5500.label", "questions.txt", "questions"])
def test_trec_lines_are_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("\n".join(TREC) + "\n\n")
    reader = read(path)
    assert (reader.schema.format, reader.schema.task) == ("trec", "classify")
    assert fields(reader, "label") == ["DESC", "ENTY", "ABBR", "DESC"]
    assert found(path, columns={"label": "fine"})[0] == ("How did the fire begin ?", "DESC:manner")
    assert fields(read(path, task="text"), "text")[1] == "What bird sings at night ?"


def test_trec_lines_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.label"
    path.write_text("\n".join([*TREC, "no label here"]))
    assert read(path).schema.format == "text"
    with pytest.raises(DataError, match=r'a.label line 5: is not a label and a text: .*; expected "LABEL:sub text"'):
        found(path, format="trec")
    assert len(found(path, format="trec", skip_bad=tmp_path / "bad.jsonl")) == 4
    path.write_text("NOTE: this is prose.\nIt goes on.\n")
    assert read(path).schema.format == "text"
