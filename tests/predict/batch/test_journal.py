"""Rows of a stopped run are kept, checked and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.predict.batch.runs import names, predict, rows, stopped

import regard
from regard.errors import FolderError, InputError
from regard.predict import Model
from regard.predict.batch.rows import InputRow
from regard.progress import Progress


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_resumed_run_gives_the_same_bytes(model: Model, tmp_path: Path, name: str) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "resumed").mkdir()
    predict(model, rows(40), tmp_path / "whole" / name)
    output = tmp_path / "resumed" / name
    stopped(model, output)
    done = predict(model, rows(40), output, resume=True)
    assert (done.rows, done.resumed) == (40, 16)
    assert output.read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert names(output.parent) == [name]


def test_without_resume_it_starts_again(model: Model, tmp_path: Path) -> None:
    stopped(model, tmp_path / "a.jsonl")
    done = predict(model, rows(10), tmp_path / "a.jsonl")
    assert (done.rows, done.resumed, done.removed) == (10, 0, 16)
    assert names(tmp_path) == ["a.jsonl"]


def test_nothing_to_resume_is_a_start(model: Model, tmp_path: Path) -> None:
    assert predict(model, rows(10), tmp_path / "a.jsonl", resume=True).resumed == 0
    with pytest.raises(InputError, match=r"broke off\.$"):
        predict(model, rows(10, stop=5), tmp_path / "b.jsonl", resume=True)
    assert names(tmp_path) == ["a.jsonl"]


def test_another_input_is_not_resumed(model: Model, tmp_path: Path) -> None:
    stopped(model, tmp_path / "a.jsonl")
    other = (InputRow(f"{row.item}!", row.columns | {"text": f"{row.item}!"}) for row in rows(40))
    with pytest.raises(FolderError, match=r"the first 16 rows of the input are not those"):
        predict(model, other, tmp_path / "a.jsonl", resume=True)
    with pytest.raises(FolderError, match=r"the first 16 rows of the input are not those"):
        predict(model, rows(12), tmp_path / "a.jsonl", resume=True)
    assert predict(model, rows(40), tmp_path / "a.jsonl", resume=True).resumed == 16


def test_another_model_is_not_resumed(model: Model, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "a.jsonl"
    stopped(model, output)
    copy = regard.load(model.save(tmp_path / "copy"), device="cpu")
    (tmp_path / "copy" / "config.json").write_text((tmp_path / "copy" / "config.json").read_text() + " ")
    with pytest.raises(FolderError, match="differs in model"):
        predict(copy, rows(40), output, resume=True)
    with pytest.raises(FolderError, match="differs in settings"):
        predict(model, rows(40), output, resume=True, batch_tokens=65)
    with pytest.raises(FolderError, match="differs in settings"):
        predict(model, rows(40), output, resume=True, settings={"columns": "text=a"})


@pytest.mark.parametrize("damage", ["part", "short", "note", "fields"])
def test_damaged_rows_are_not_resumed(model: Model, tmp_path: Path, damage: str) -> None:
    stopped(model, tmp_path / "a.jsonl")
    part, note = tmp_path / ".a.jsonl.rows.part", tmp_path / ".a.jsonl.rows.json"
    content = bytearray(part.read_bytes())
    if damage == "part":
        content[100] ^= 1
        part.write_bytes(content)
    elif damage == "short":
        part.write_bytes(content[:200])
    elif damage == "note":
        note.write_text(note.read_text()[:50])
    else:
        note.write_text(json.dumps({**json.loads(note.read_text()), "bytes": "many"}))
    with pytest.raises(FolderError, match=r"cannot be resumed: .* Leave --resume out to start again"):
        predict(model, rows(40), tmp_path / "a.jsonl", resume=True)
    assert predict(model, rows(40), tmp_path / "a.jsonl").rows == 40


@pytest.mark.parametrize("resume", [False, True])
def test_a_living_run_is_left_alone(model: Model, tmp_path: Path, resume: bool) -> None:
    recorded = []

    def start_another(progress: Progress) -> None:
        if progress.done == 20:
            with pytest.raises(FolderError, match="another process is writing this file"):
                predict(model, rows(10), tmp_path / "a.jsonl", resume=resume)
            recorded.append(progress.done)

    assert predict(model, rows(40), tmp_path / "a.jsonl", progress=start_another).rows == 40
    assert recorded == [20]
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 40
