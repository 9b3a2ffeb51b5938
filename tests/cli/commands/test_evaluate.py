"""`regard evaluate` as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.helpers import QUICK, Capture, run


def test_evaluate_as_table_and_json(
    capsys: Capture,
    trained: Path,
    tmp_path: Path,
    write_rows: Callable[..., Path],
    reviews: Callable[..., list[object]],
) -> None:
    data = write_rows(tmp_path / "test.csv", reviews(30, seed=5), header=("opinion", "stars"))
    messages = ("--columns", "text=opinion,label=stars", "--device", "cpu")
    status, out, err = run(capsys, "evaluate", trained, data, *messages, "--output", tmp_path / "a.jsonl")
    assert status == 0
    assert "accuracy" in out
    assert "30 rows" in out
    assert "data: csv for classify (text=opinion, label=stars)" in err
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 30
    status, out, _ = run(capsys, "evaluate", trained, data, *messages, "--json")
    content = json.loads(out)
    classes = {"classes", "averages", "confusion", "calibration"}
    assert set(content) == {"task", "rows", "scores", "seconds", "folder", "seen", *classes}
    assert content["folder"] == str(trained)


def test_a_model_of_likeness_takes_texts_two_by_two(capsys: Capture, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2\n" + "".join(f"one {n},two {n % 3}\n" for n in range(20)))
    argv = ("train", pairs, "--task", "embed", "--out", tmp_path / "run", *QUICK)
    status, out, _ = run(capsys, *argv)
    assert status == 0
    assert f'regard embed {tmp_path / "run"} "a text" "another"' in out
    messages = [
        run(capsys, "predict", tmp_path / "run", *arguments, "--json")[1]
        for arguments in ((*"ab",), ("--input", pairs))
    ]
    assert [len(lines.splitlines()) for lines in messages] == [1, 20]
    assert set(json.loads(messages[0])) == {"similarity", "is_nearest", "truncated", "windows"}
