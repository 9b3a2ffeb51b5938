"""--encoding on every command that reads data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.cli import main

TABLE = "text;label\n" + "".join(
    f"Die Küche Nummer {n} war größer;{'gut' if n % 2 else 'schlecht'}\n" for n in range(8)
)


@pytest.mark.parametrize(
    "command", ["train", "evaluate", "predict", "check", "embed", "translate", "pretrain", "tokenizer", "vectors"]
)
def test_every_command_has_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, "--help"])
    assert "--encoding" in capsys.readouterr().out


@pytest.mark.filterwarnings("always:.*is read as cp1252")
def test_check_reports_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes(TABLE.encode("cp1252"))
    fixed = tmp_path / "fixed.csv"
    assert main(["check", str(path), "--fix", str(fixed), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["encoding"] == "cp1252"
    assert captured.err.count("is read as cp1252, because it is not valid UTF-8. Use --encoding") == 1
    assert "Küche" in fixed.read_text(encoding="utf-8")
    assert main(["check", str(path), "--encoding", "cp1252", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["encoding"] == "cp1252"
    assert captured.err == ""


def test_text_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes((TABLE * 20).encode("cp1251", "ignore") + "Привет\n".encode("cp1251") * 20)
    messages = ["--encoding", "cp1251", "--json"]
    assert main(["tokenizer", str(path), "--size", "60", "--out", str(tmp_path / "words"), *messages]) == 0
    assert json.loads(capsys.readouterr().out)["unknown_fraction"] == 0
    assert main(["vectors", str(path), "--epochs", "1", "--nearest", "привет", *messages]) == 0
    assert "nearest" in json.loads(capsys.readouterr().out)
