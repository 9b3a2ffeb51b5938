"""regard attention, and regard fill --next."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.helpers import Capture, run

import regard
from regard.text.learn import train_tokenizer_from_texts

TEXT = "the old man went to the market and the market was closed"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = train_tokenizer_from_texts([TEXT] * 5, kind="wordpiece", size=50)
    place = regard.config.PositionConfig(max_tokens=16)
    model = regard.create("tiny-bert", tokenizer=words, heads={"masked": 0, "next": 2}, positions=place, device="cpu")
    return model.save(tmp_path_factory.mktemp("models") / "model")


def test_weights_as_json(folder: Path, capsys: Capture) -> None:
    status, out, err = run(
        capsys, "attention", folder, "the old man", "--layers", "all", "--heads", "1", "-1", "--json"
    )
    assert status == 0
    assert "untrained" in err
    content = json.loads(out)
    assert content["untrained"] is True
    assert (content["layers"], content["heads"], content["window"]) == ([1, 2], [1, 3], 0)
    weights, size = np.array(content["weights"]), len(content["tokens"])
    assert weights.shape == (2, 2, size, size)
    expected = regard.load(folder, device="cpu").attention("the old man")
    assert np.allclose(weights[1, 0], expected[2][1].numpy(), atol=1e-6)
    assert np.allclose(weights.sum(-1), 1, atol=1e-4)


def test_a_long_text_window_by_window(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    text = f"{TEXT} {TEXT} {TEXT}"
    status, out, _ = run(capsys, "attention", folder, text, "--json")
    assert status == 0
    windows = [json.loads(line) for line in out.splitlines()]
    assert len(windows) > 2
    assert [window["window"] for window in windows] == list(range(len(windows)))
    assert all(len(window["tokens"]) <= 16 for window in windows)
    status, out, _ = run(capsys, "attention", folder, text, "--output", tmp_path / "weights.npz")
    assert status == 0
    assert out == f"{len(windows)} windows, 1 layer, 4 heads: {tmp_path / 'weights.npz'}\n"
    with np.load(tmp_path / "weights.npz") as arrays:
        assert arrays["layers"].tolist() == [2]
        for number, window in enumerate(windows):
            assert np.allclose(arrays[f"weights_{number}"], np.array(window["weights"]), atol=1e-5)
            assert arrays[f"tokens_{number}"].tolist() == window["tokens"]
            assert arrays[f"offsets_{number}"].tolist() == window["offsets"]


def test_a_table_of_where_tokens_look(folder: Path, capsys: Capture) -> None:
    status, out, _ = run(capsys, "attention", folder, "the old man", "--heads", "0")
    assert status == 0
    assert out.splitlines()[0] == "window 1, layer 2, mean of 1 heads"
    model = regard.load(folder, device="cpu")
    assert len(out.splitlines()) == 1 + len(model.attention("the old man").tokens)


def test_a_picture(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    status, out, _ = run(capsys, "attention", folder, "the old man", "--layers", "all", "--plot", tmp_path / "a.png")
    assert status == 0
    assert out.startswith("8 heads, ")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


# fill --next
