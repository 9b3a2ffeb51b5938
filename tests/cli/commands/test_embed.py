"""`regard embed`: vectors as JSON lines, tables and arrays."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.cli.helpers import run

import regard

TEXTS = ["a cat sat on the mat", "the stock market fell", "a dog lay on the rug"]


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    model = regard.load("minilm").embed(TEXTS)
    assert isinstance(model, np.ndarray)
    return model


def test_embed_prints_one_object_a_line(capsys: pytest.CaptureFixture[str], vectors: np.ndarray) -> None:
    status, out, err = run(capsys, "embed", "minilm", *TEXTS, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert [row["text"] for row in rows] == TEXTS
    np.testing.assert_allclose([row["vector"] for row in rows], vectors, atol=1e-6)


def test_embed_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "embed", "minilm", *TEXTS)
    assert status == 0
    assert [line.split("  ")[0] for line in out.splitlines()] == TEXTS
    assert "384 numbers" in out


def test_embed_writes_an_array(capsys: pytest.CaptureFixture[str], tmp_path: Path, vectors: np.ndarray) -> None:
    source, target = tmp_path / "texts.txt", tmp_path / "out.npy"
    source.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(TEXTS).encode() + b"\r\n")
    status, out, _ = run(capsys, "embed", "minilm", "--input", str(source), "--output", str(target), "--json")
    assert status == 0
    assert json.loads(out) == {"texts": 3, "width": 384, "output": str(target)}
    np.testing.assert_allclose(np.load(target), vectors, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npy", "texts.txt"]


def test_embed_writes_one_array_a_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, target = tmp_path / "texts.jsonl", tmp_path / "out.npz"
    source.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS))
    status, out, _ = run(
        capsys, "embed", "minilm", "--input", str(source), "--output", str(target), "--pooling", "none"
    )
    assert status == 0
    assert str(target) in out
    with np.load(target) as result:
        assert [result[name].shape for name in result.files] == [(8, 384), (6, 384), (8, 384)]


def test_embed_takes_layer_pool_and_length(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("embed", "minilm", TEXTS[0], "--layer", "2", "--pooling", "first", "--normalize", "--json")
    status, out, _ = run(capsys, *argv)
    expected = regard.load("minilm").embed(TEXTS[:1], layer=2, pooling="first", normalize=True)
    assert status == 0
    np.testing.assert_allclose(json.loads(out)["vector"], expected[0], atol=1e-6)
    assert np.linalg.norm(expected[0]) == pytest.approx(1, abs=1e-5)


def test_nothing_is_left_on_a_full_disk(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "save", full)
    status, _, err = run(capsys, "embed", "minilm", "a", "--output", str(tmp_path / "out.npy"))
    assert status == 1
    assert "No space left" in err
    assert list(tmp_path.iterdir()) == []
