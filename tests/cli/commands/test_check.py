"""`regard check` on the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard import cli, samples

BAD = "text,label\nthe sea was calm at noon,a\n,b\nit rained for a whole week,b\nthe sea was calm at noon,a\n"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.csv"
    path.write_text(BAD)
    return path


def test_table_has_line_and_fix(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(bad)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^rows +4$", out, re.M)
    assert re.search(r"^labels +a: 2, b: 2$", out, re.M)
    assert "the text is empty" in out
    assert "→ Remove the rows (done by --fix)." in out
    assert out.index("error") < out.index("warning")


def test_json_has_the_shape_of_the_contract(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(bad), "--json", "--model", "bert-tiny"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert (out["rows"], out["task"], out["labels"]) == (4, "classify", {"a": 2, "b": 2})
    assert [(one["kind"], one["severity"], one["line"]) for one in out["findings"]] == [
        ("empty-text", "error", 3),
        ("duplicate", "warning", 5),
    ]
    assert all(one["message"] and one["fix"] for one in out["findings"])
    assert out["estimate"]["model"] == "bert-tiny"
    assert out["lengths"]["limit"] == 512


def test_training_of_a_translator_is_estimated_for_a_named_model_only(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = str(samples.path("english-spanish"))
    assert cli.main(["check", pairs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"] is None
    assert cli.main(["check", pairs, "--json", "--model", "transformer-small"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"]["model"] == "transformer-small"


def test_strict_exits_with_one_for_errors_only(bad: Path, tmp_path: Path) -> None:
    assert cli.main(["check", str(bad), "--strict"]) == 1
    assert cli.main(["check", str(samples.path("messages")), "--strict"]) == 0
    fine = tmp_path / "fine.csv"
    fine.write_text(BAD.replace("\n,b", "\na bird sang,b"))
    assert cli.main(["check", str(fine), "--strict"]) == 0


def test_page_copy_dev_columns_and_skipped_rows(bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dev = tmp_path / "dev.csv"
    dev.write_text("review,stars\nthe sea was calm at noon,a\na bird sang,b\none,two,three\n")
    messages = ["--columns", "text=review,label=stars", "--task", "classify", "--format", "csv"]
    skipped = ["--skip-bad", str(tmp_path / "skipped.jsonl")]
    assert cli.main(["check", str(dev), *messages, *skipped, "--html", str(tmp_path / "a.html")]) == 0
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "skipped.jsonl").read_text())["line"] == 4
    plain = tmp_path / "plain.csv"
    plain.write_text("text,label\nthe sea was calm at noon,a\n")
    capsys.readouterr()
    assert cli.main(["check", str(bad), "--dev", str(plain), "--fix", str(tmp_path / "b.csv"), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert "leak" in {one["kind"] for one in out["findings"]}
    assert out["fixed"]["rows"] == 2
    assert (tmp_path / "b.csv").read_text() == BAD.replace(",b\nit", "it", 1).rsplit("the sea", 1)[0]


def test_a_file_that_cannot_be_read_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.csv").write_text("")
    assert cli.main(["check", str(tmp_path / "empty.csv"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["kind"] == "unreadable"
    assert cli.main(["check", str(tmp_path / "nowhere.csv")]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_missing_data_is_found_before_torch_is_imported() -> None:
    """An answer within a second; importing torch takes longer."""
    code = (
        "import sys; from regard.cli import main; print(main(['check', 'missing.csv']), "
        "main(['train', 'missing.csv', '--out', 'model']), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1 1 False\n", "regard: missing.csv: does not exist.\n" * 2)
