"""A published name means its published weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checkpoint.hub_server import COMMIT, Hub, ask

import regard
from regard.checkpoint.families import PRESETS
from regard.checkpoint.hub import looks_like_hub_id
from regard.checkpoint.published import PUBLISHED
from regard.cli import main
from regard.errors import InputError


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in PUBLISHED])
def test_a_shape_without_published_weights_is_never_loaded(name: str) -> None:
    with pytest.raises(InputError, match=rf'no weights were published.* --preset {name} .*regard.create\("{name}"\)'):
        regard.load(name)


def test_names_of_published_models_are_hub_ids() -> None:
    assert all(looks_like_hub_id(hub_id) for hub_id in PUBLISHED.values())
    assert {"bert-base-uncased", "gpt2", "roberta-base", "t5-small", "bert-tiny"} <= set(PUBLISHED)


def test_a_published_name_means_its_published_weights(hub: Hub, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (absent,) = ask(hub, cache, "bert-base-uncased", HF_HUB_OFFLINE="1")
    assert absent.startswith("FolderError: bert-base-uncased means the published weights google-bert/bert-base-uncased")
    assert "hf download google-bert/bert-base-uncased --local-dir FOLDER" in absent
    assert '--preset bert-base-uncased, or regard.create("bert-base-uncased")' in absent
    assert hub.requests == []
    result, missing = ask(hub, cache, "bert-base-uncased", "gpt2")
    assert result[:2] == ["bert", str(cache / "models--google-bert--bert-base-uncased" / "snapshots" / COMMIT)]
    assert missing.startswith("FolderError: gpt2 means the published weights openai-community/gpt2")
    (cache / "models--google-bert--bert-base-uncased").rename(cache / "models--bert-base-uncased")  # an old cache
    (result,) = ask(hub, cache, "bert-base-uncased", HF_HUB_OFFLINE="1")
    assert result[:2] == ["bert", str(cache / "models--bert-base-uncased" / "snapshots" / COMMIT)]


@pytest.mark.parametrize("command", ["embed", "fill", "predict", "generate", "evaluate"])
def test_no_command_takes_random_weights_for_a_published_name(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.checkpoint.hub._download", refuse_download)
    Path("text.csv").write_text("text,label\na text,x\n")
    text = "text.csv" if command == "evaluate" else "a [MASK] text"
    assert main([command, "bert-base-uncased", text]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hf download google-bert/bert-base-uncased" in captured.err
    assert "--preset bert-base-uncased" in captured.err


@pytest.mark.parametrize("command", ["train", "pretrain"])
def test_no_training_takes_random_weights_for_a_published_name(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.checkpoint.hub._download", refuse_download)
    rows = [f"text {number},{'xy'[number % 2]}" for number in range(40)]
    Path("text.csv").write_text("\n".join(["text,label", *rows]))
    assert main([command, "text.csv", "--start", "bert-base-uncased", "--out", "out"]) == 1
    assert "hf download google-bert/bert-base-uncased" in capsys.readouterr().err


def refuse_download(*_: object, **__: object) -> Path:
    raise OSError("no connection")
