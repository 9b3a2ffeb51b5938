"""regard vectors on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from regard import cli, samples
from regard.word_vectors.files import load_vectors, save_vectors
from regard.word_vectors.vectors import WordVectors


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(["vectors", *argv])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def royal(tmp_path: Path) -> str:
    table = np.array([[1, 0, 0], [-1, 0, 0], [1, 2, 0], [-1, 2, 0], [0, 0, 3]], np.float32)
    save_vectors(WordVectors(("man", "woman", "king", "queen", "apple"), table), tmp_path / "royal.txt")
    return str(tmp_path / "royal.txt")


def test_questions_to_vectors_that_are_there(capsys: pytest.CaptureFixture[str], royal: str, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text(": one\nman king woman queen\nman king boy prince\n")
    questions = ("--nearest", "king", "apple", "--analogy", "man", "king", "woman", "--score", str(tmp_path / "q.txt"))
    status, out, err = run(capsys, "--load", royal, *questions, "--top", "1", "--json")
    assert (status, err) == (0, "")
    content = json.loads(out)
    assert content["nearest"]["king"] == [{"word": "queen", "score": 0.6}]
    assert content["analogy"][0]["word"] == "queen"
    assert content["score"]["one"] == content["score"]["all"] == {"right": 1, "known": 1, "total": 2, "accuracy": 1.0}
    status, out, _ = run(capsys, "--load", royal, *questions, "--top", "1", "--method", "mul")
    assert "nearest king   queen 0.60\n" in out
    assert "score all      100.0% (1 of 1 known, 2 asked)\n" in out
    (tmp_path / "q.txt").write_text(": one\nman king boy prince\n")
    status, out, _ = run(capsys, "--load", royal, "--score", str(tmp_path / "q.txt"))
    assert "score all  none of 1 question has all its words in the vocabulary\n" in out


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "glove"])
def test_learning_and_converting(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    binary, text = str(tmp_path / "v.bin"), str(tmp_path / "v.vec")
    flags = (
        "--kind",
        kind,
        "--width",
        "10",
        "--epochs",
        "1",
        "--max-words",
        "3000",
        "--min-count",
        "2",
    )
    status, out, _ = run(capsys, str(samples.path("corpus")), *flags, "--out", binary, "--json")
    content = json.loads(out)
    assert (status, content["kind"], content["width"], content["words_read"]) == (0, kind, 10, 3000)
    assert run(capsys, "--load", binary, "--out", text)[0] == 0
    one, other = load_vectors(binary), load_vectors(text)
    assert one.words == other.words
    assert len(one) == content["vectors"]
    assert np.array_equal(one.table, other.table)
