"""`regard tokenizer`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.text.corpus import CORPUS, SIZES, trained

from regard import cli
from regard.text.learn import KINDS
from regard.text.tokenizer import Tokenizer


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(("tokenizer", *argv))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("kind", KINDS)
def test_train_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    source, out = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_text(CORPUS, encoding="utf-8")
    argv = [str(source), "--kind", kind, "--size", str(SIZES[kind]), "--out", str(out)]
    status, message, err = run(capsys, *argv, "--json")
    content = json.loads(message)
    assert (status, err) == (0, "")
    assert (content["kind"], content["size"], content["folder"]) == (kind, trained(kind).size, str(out))
    assert Tokenizer.load(out).backend.to_str() == trained(kind).backend.to_str()
    status, message, err = run(capsys, *argv)
    assert (status, message) == (1, "")
    assert "exists and is not empty" in err
    status, message, err = run(capsys, *argv, "--overwrite")
    assert (status, err) == (0, "")
    assert "tokens per word" in message
    assert len(message.splitlines()) == 12


def test_characters_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_text(CORPUS, encoding="utf-8")
    assert run(capsys, str(source), "--size", "200", "--cased", "--out", str(out))[0] == 0
    assert "The" in Tokenizer.load(out).backend.get_vocab()
    both = run(capsys, str(source), "--cased", "--lowercase", "--out", str(out))
    assert (both[0], both[1]) == (2, "")
    assert "give one of them" in both[2]
    assert run(capsys, "--out", str(out))[0] == 2
    assert run(capsys, str(source), "--kind", "wordpeice", "--out", str(out))[0] == 2
