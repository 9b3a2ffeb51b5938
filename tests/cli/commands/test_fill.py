"""`regard fill`: tokens for masks, and whether one sentence follows another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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


def test_next_sentence(folder: Path, capsys: Capture) -> None:
    model = regard.load(folder, device="cpu")
    chance = model.next_sentence("the old man", "the market")
    assert chance == model.next_sentence("the old man", "the market")
    status, out, _ = run(capsys, "fill", folder, "--next", "the old man", "the market", "--json")
    assert status == 0
    assert json.loads(out)["next_sentence"] == pytest.approx(chance)
    status, out, _ = run(capsys, "fill", folder, "--next", "the old man", "the market")
    assert out.startswith(f"{chance:.3f}  probability that the second text comes right after the first")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory, reviews: Callable[..., list[tuple[str, str]]]) -> Path:
    from dataclasses import replace

    from regard.checkpoint.source import from_preset
    from regard.checkpoint.write_folder import write_folder
    from regard.text.learn import train_tokenizer_from_texts

    words = train_tokenizer_from_texts((text for text, _ in reviews(40)), kind="wordpiece", size=90)
    checkpoint = from_preset("tiny-bert", heads={"masked": 0, "next": 2}, vocabulary=words.size)
    folder = tmp_path_factory.mktemp("masked") / "model"
    write_folder(folder, replace(checkpoint), write_extra_files=words.save)
    return folder


def test_words_for_a_mask(capsys: Capture, masked: Path) -> None:
    status, out, err = run(capsys, "fill", masked, "a [MASK] film", "--top", "3")
    assert status == 0
    assert "is untrained: its weights are randomly initialized" in err
    assert len(out.splitlines()) == 3
    assert out.splitlines()[0].endswith(" film")


def test_words_for_several_masks(capsys: Capture, masked: Path) -> None:
    status, out, _ = run(capsys, "fill", masked, "a [MASK] film of the [MASK]", "--json")
    content = json.loads(out)
    assert status == 0
    assert [len(words) for words in content["masks"]] == [5, 5]
    assert set(content["masks"][0][0]) == {"word", "score", "text"}
    assert content["untrained"] is True
