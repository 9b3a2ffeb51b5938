"""Predictions to a file: columns kept, names that do not collide, and runs that are stopped and resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import fork_server
from tests.predict.batch.runs import names, predict, rows

from regard.errors import FolderError
from regard.predict import Model
from regard.predict.batch.rows import InputRow
from regard.tasks.classify import LabelAnswer

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
