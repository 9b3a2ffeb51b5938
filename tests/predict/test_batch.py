"""Files of inputs and outputs: rows, formats, and a journal that a stopped run goes on from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import fork_server

import regard
from regard.errors import DataError, FolderError, InputError
from regard.predict import Model
from regard.predict.batch.files import predict_to_file
from regard.predict.batch.read_options import TrainingReadOptions
from regard.predict.batch.rows import InputRow, file_rows, text_rows
from regard.progress import Progress
from regard.tasks.classify import Classify, LabelAnswer

# Files of a test.


def put(path: Path, content: str) -> str:
    path.write_text(content)
    return str(path)


# Predictions of many rows, and runs that stop in the middle.


WORDS = ("warm", "lovely", "dull", "cold", "the best of the year", "poor and cold", "fun")


def rows(count: int, stop: int | None = None) -> Iterator[InputRow]:
    for number in range(count):
        if number == stop:
            raise InputError("the input broke off.")
        text = " ".join(WORDS[place % len(WORDS)] for place in range(number % 9 + 1)) + f" {number}"
        yield InputRow(text, {"nr": number, "text": text})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def predict(model: Model, source: Iterator[InputRow], output: Path, **more: Any) -> Any:
    return predict_to_file(model, source, output, **{"batch_tokens": 64, **more})


def stopped(model: Model, output: Path, *, after: int = 21) -> None:
    """A run that failed and left what was complete: 16 rows here."""
    with pytest.raises(InputError, match=r"broke off\. 16 rows are kept: .* --resume") as error:
        predict(model, rows(40, stop=after), output)
    assert "16 rows are kept" in error.value.with_flags
    assert names(output.parent) == [f".{output.name}.rows.json", f".{output.name}.rows.part"]


# A trained model, and chunks of a few rows.


@pytest.fixture(scope="module")
def model(trained: Path) -> Model:
    return regard.load(trained, device="cpu")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classify, "chunk_size", 8)


# Rows of files for every task, with all their columns.


@pytest.mark.parametrize(
    ("name", "content", "task", "item", "columns"),
    [
        ("a.txt", "one\ntwo\n", "classify", "one", {"text": "one"}),
        ("a.csv", "id,text,label\n1,one,x\n2,two,y\n", "classify", "one", {"id": "1", "text": "one", "label": "x"}),
        ("a.csv", "one,x\ntwo,y\nthree,x\nfour,y\n", "classify", "one", {"text": "one", "1": "x"}),
        (
            "a.jsonl",
            '{"id": 7, "text": "one", "more": [1]}\n',
            "classify",
            "one",
            {"id": 7, "text": "one", "more": [1]},
        ),
        ("a.conll", "Ida B-PER\ncame O\n\n", "tag", "Ida came", {"tokens": ["Ida", "came"], "tags": ["B-PER", "O"]}),
        ("a.jsonl", '{"n": 1, "tokens": ["Ida", "came"]}\n', "tag", "Ida came", {"n": 1, "tokens": ["Ida", "came"]}),
        ("a.csv", "n,text\n1,Ida came\n", "tag", "Ida came", {"n": "1", "text": "Ida came"}),
        ("a.csv", "doc_id,text\n1,Ida came\n", "tag", "Ida came", {"doc_id": "1", "text": "Ida came"}),
        ("a.conll", "-DOCSTART- O\n\nIda O\n\n", "tag", "Ida", {"tokens": ["Ida"], "tags": ["O"]}),
        ("a.csv", "n,en,de\n1,one,eins\n", "translate", "one", None),
    ],
)
def test_columns_are_kept(tmp_path: Path, name: str, content: str, task: str, item: str, columns: Any) -> None:
    path = put(tmp_path / name, content)
    if columns is None:
        (row, *_) = file_rows(path, task, read_options=TrainingReadOptions({"source": "en", "target": "de"}))
        assert row.columns == {"n": "1", "en": "one", "de": "eins"}
    elif "1" in columns:
        (row, *_) = file_rows(path, task, columns={"text": 0})
        assert row.columns == columns
    else:
        (row, *_) = file_rows(path, task)
        assert row.columns == columns
    assert row.item.text == item


def test_pairs_and_questions_keep_their_columns(tmp_path: Path) -> None:
    pairs = put(tmp_path / "a.csv", "id,sentence1,sentence2,label\n1,a,b,x\n")
    (row,) = file_rows(pairs, "pair")
    assert (row.item.first, row.item.second) == ("a", "b")
    assert row.columns == {"id": "1", "sentence1": "a", "sentence2": "b", "label": "x"}
    options = {"id": "q7", "question": "who?", "answers": []}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "Ida came.", "qas": [options]}]}]}
    (row,) = file_rows(put(tmp_path / "a.json", json.dumps(squad)), "answer")
    assert (row.item.question, row.item.context) == ("who?", "Ida came.")
    assert row.columns == {**options, "context": "Ida came.", "title": "t"}


def test_texts() -> None:
    assert [row.columns for row in text_rows(["a", "b"], "classify")] == [{"text": "a"}, {"text": "b"}]
    assert [row.columns for row in text_rows(["a", "b"], "pair")] == [{"first": "a", "second": "b"}]
    assert [row.item for row in text_rows(["a", "b"], "answer", context="c")] == [("a", "c"), ("b", "c")]


# Predictions to a file: columns kept, names that do not collide, and runs that are stopped and resumed.


KILLED = """
import os, signal, sys
from pathlib import Path
import regard
from regard.predict.batch.files import predict_to_file
from regard.predict.batch.rows import InputRow
from regard.tasks.classify import Classify

Classify.chunk_size = 8
texts = [f"warm and lovely {number}" for number in range(40)]

def stop(progress):
    if progress.done == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

rows = (InputRow(text, {"text": text}) for text in texts)
predict_to_file(regard.load(sys.argv[1], device="cpu"), rows, Path(sys.argv[2]), batch_tokens=64, progress=stop)
"""


@pytest.mark.parametrize("moment", [5, 29])
def test_a_killed_run_is_resumed(trained: Path, model: Model, tmp_path: Path, moment: int) -> None:
    def source() -> Iterator[InputRow]:
        texts = [f"warm and lovely {number}" for number in range(40)]
        return (InputRow(text, {"text": text}) for text in texts)

    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    output = tmp_path / "killed" / "a.jsonl"
    done = fork_server.run("-c", KILLED, trained, output, moment)
    assert done.returncode == -9
    assert ".a.jsonl.rows.part" in names(output.parent)
    result = predict(model, source(), output, resume=True)
    assert result.resumed == moment // 8 * 8
    predict(model, source(), tmp_path / "whole" / "a.jsonl")
    assert output.read_bytes() == (tmp_path / "whole" / "a.jsonl").read_bytes()
    assert names(output.parent) == ["a.jsonl"]


def test_a_full_disk_is_reported(model: Model) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(FolderError, match="No space left on device"):
        predict(model, rows(10), Path("/dev/full"))


# Names


def answered(model: Model, columns: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    predict(model, iter([InputRow("a text", columns)]), tmp_path / "a.jsonl")
    content: dict[str, Any] = json.loads((tmp_path / "a.jsonl").read_text())
    return content


def test_names_do_not_collide(model: Model, tmp_path: Path) -> None:
    default = {"label", "score", "scores", "truncated", "windows"}
    assert set(answered(model, {"text": "a text"}, tmp_path)) == {"text", *default}
    result = answered(model, {"label": "old", "score": 1}, tmp_path)
    assert (result["label"], result["score"]) == ("old", 1)
    assert set(result) - {"label", "score"} == {"predicted_label", "predicted_score", "scores", "truncated", "windows"}
    result = answered(model, {"label": "old", "predicted_label": "older"}, tmp_path)
    assert (result["label"], result["predicted_label"]) == ("old", "older")
    assert result["predicted_label_"] in ("good", "bad")


def test_a_column_that_comes_late_is_kept_too(model: Model, tmp_path: Path) -> None:
    """Names are chosen at the first rows, and stay."""
    source = [
        InputRow("a text", {"text": "a text"} | ({"label": "old"} if number == 20 else {})) for number in range(21)
    ]
    predict(model, iter(source), tmp_path / "a.jsonl")
    last = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[-1])
    assert last["input_label"] == "old"
    assert last["label"] in ("good", "bad")


def test_rows_stream(model: Model, tmp_path: Path) -> None:
    """No more rows than two chunks are asked for before the first is written."""
    ahead: list[int] = []
    rows_read = 0

    def source() -> Iterator[InputRow]:
        nonlocal rows_read
        for row in rows(200):
            rows_read += 1
            yield row

    predict(model, source(), tmp_path / "a.csv", progress=lambda report: ahead.append(rows_read - report.done))
    assert max(ahead) <= 16
    assert isinstance(model.predict(["a"])[0], LabelAnswer)


# Rows of a stopped run are kept, checked and resumed.


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


# How the training files were read, used again for the input of a prediction.


def test_remembered_columns_are_used_where_the_file_has_them(tmp_path: Path) -> None:
    named = TrainingReadOptions({"text": "opinion", "label": "stars"})
    both = put(tmp_path / "a.csv", "text,opinion\nno,yes\n")
    other = put(tmp_path / "b.csv", "text,label\nyes,a\n")
    assert next(file_rows(both, "classify", read_options=named)).item.text == "yes"
    assert next(file_rows(other, "classify", read_options=named)).item.text == "yes"
    assert next(file_rows(both, "classify", read_options=named, columns={"text": "text"})).item.text == "no"
    pairs = put(tmp_path / "c.csv", "left,right\na,b\n")
    assert (
        next(
            file_rows(pairs, "pair", read_options=TrainingReadOptions({"first": "left", "second": "right"}))
        ).item.second
        == "b"
    )
    with pytest.raises(DataError):
        next(file_rows(pairs, "pair", read_options=TrainingReadOptions({"first": "other", "second": "right"})))


def test_numbers_of_columns_are_for_files_without_names(tmp_path: Path) -> None:
    named = put(tmp_path / "a.csv", "id,text\n1,yes\n")
    assert next(file_rows(named, "classify", read_options=TrainingReadOptions({"text": "0"}))).item.text == "yes"


def test_the_encoding_of_the_training_is_for_files_that_are_not_utf8(tmp_path: Path) -> None:
    named = TrainingReadOptions(encoding="mac-roman")
    (tmp_path / "a.txt").write_bytes("Zoé, née là\n".encode("mac-roman"))
    (tmp_path / "b.txt").write_bytes("Zoé, née là\n".encode())
    for name in ("a.txt", "b.txt"):
        assert next(file_rows(str(tmp_path / name), "classify", read_options=named)).item.text == "Zoé, née là"


@pytest.mark.parametrize("damage", [None, [], {"columns": [1]}, {"columns": {"text": 7, "what": "a"}, "separator": 5}])
def test_a_damaged_memory_is_none(damage: Any) -> None:
    assert TrainingReadOptions.of(damage) == TrainingReadOptions()
