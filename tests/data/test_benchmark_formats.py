"""CLINC's JSON with its splits inside, and TREC's lines of a label and a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.data.helpers import text_and_label

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


def test_clinc_splits_are_read(clinc: Path) -> None:
    assert split_names(clinc) == ("train", "valid", "test")
    train = [tuple(row) for row in (*CLINC["train"], *CLINC["oos_train"])]
    assert text_and_label(read(clinc)) == text_and_label(read(clinc, split="train")) == train
    assert text_and_label(read(clinc, split="valid")) == [tuple(row) for row in (*CLINC["oos_val"], *CLINC["val"])]
    assert text_and_label(read(clinc, split="test")) == [tuple(row) for row in (*CLINC["oos_test"], *CLINC["test"])]
    assert str(read(clinc, split="test").schema).endswith("a list for each split; this is test")
    data = load_data(clinc)
    assert (data.task, len(data.train), len(data.dev), data.split_off) == ("classify", 42, 7, False)
    report = check(clinc)
    assert [(split.name, split.rows) for split in report.splits] == [("train", 42), ("valid", 7), ("test", 9)]


def test_splits_of_objects_and_faults_inside(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"train": [{"text": "x", "label": "a"}], "note": 5, "validation": [{"text": "y"}]}))
    assert split_names(path) == ("train", "valid")
    assert text_and_label(read(path)) == [("x", "a")]
    path.write_text('{"train": [["x", "a"],\n["y"]], "test": [["z", "b"]]}')
    with pytest.raises(DataError, match="line 2, row 2: is a list; expected an object"):
        text_and_label(read(path))
    with pytest.raises(DataError, match="has no readable row"):
        text_and_label(read(path, split="valid"))
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
