"""A model by name: a folder, a preset, minilm, or a hub id; the network is called for the last alone."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard import samples
from regard.checkpoint.source import MINILM, find_folder, from_preset, minilm_folder, open_checkpoint
from regard.errors import FolderError, InputError
from regard.predict import info

# names


def test_a_folder_is_found_by_text_and_by_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for name in (folder, str(folder), "model", "./model", "~/model"):
        checkpoint, where = open_checkpoint(name)
        assert checkpoint.family == "bert"
        assert where is not None
        assert where.resolve() == folder


def test_a_folder_stands_before_a_preset_of_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.rename(folder.parent / "tiny-gpt2")
    monkeypatch.chdir(folder.parent)
    assert open_checkpoint("tiny-gpt2")[0].family == "bert"


def test_a_preset_is_initialized_from_a_seed() -> None:
    one, other, third = (
        from_preset("tiny-bert", dtype=torch.float32, seed=seed).network.state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert not all(torch.equal(tensor, third[name]) for name, tensor in one.items())
    assert 0.01 < one["encoder.embeddings.tokens.weight"].std() < 0.03


def test_minilm_is_read_from_its_package_without_running_it() -> None:
    sys.modules.pop(MINILM, None)
    assert find_folder("minilm") == minilm_folder()
    assert (minilm_folder() / "model.safetensors").is_file()
    assert MINILM not in sys.modules


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("bert-tinny", InputError, 'a published model or a hub id (owner/name). Did you mean "bert-tiny"?'),
        ("minlm", InputError, 'Did you mean "minilm"?'),
        ("no-such-thing-at-all", InputError, "is not a folder, a published model or a hub id (owner/name)"),
        ("a/b/c", FolderError, "a/b/c does not exist. Expected a model folder, minilm, or a hub id."),
        ("./runs", FolderError, "runs does not exist."),
        ("/no/where", FolderError, "/no/where does not exist."),
        (Path("org/model"), FolderError, "org/model does not exist."),
        ("~nobody-at-all/model", FolderError, "~nobody-at-all/model does not exist."),
        ("", InputError, "'' is not the name of a model. Give a folder, minilm, or a hub id."),
        (" ", InputError, "' ' is not the name of a model."),
        (None, InputError, "None is not the name of a model."),
        ("a\0b", InputError, "is not a folder, a published model or a hub id"),
    ],
)
def test_a_name_that_is_none(
    name: Any, kind: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no demo has left its runs
    with pytest.raises(kind) as caught:
        find_folder(name)
    assert message in str(caught.value)


def test_a_file_in_the_place_of_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FolderError, match=r"config\.json is a file\. Expected the folder that holds config\.json"):
        find_folder(folder / "config.json")
    monkeypatch.chdir(folder.parent)
    with pytest.raises(FolderError, match="is a file"):
        find_folder("model/config.json")


def test_only_models_of_the_hub_have_revisions() -> None:
    with pytest.raises(InputError, match='revision "v2" was given, but "minilm" is not a model of the hub'):
        find_folder("minilm", revision="v2")


def test_no_network_is_called_for_what_is_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was called")

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    for source in (folder, "minilm"):
        regard.load(source)
        info(source)
    for shape in ("tiny-bert", "bert-base-uncased"):
        info(shape)
    regard.create("tiny-bert")


def test_a_preset_is_a_shape_whatever_folder_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.rename(folder.parent / "tiny-gpt2")
    monkeypatch.chdir(folder.parent)
    assert regard.create("tiny-gpt2").family == "gpt2"
    with pytest.raises(InputError, match=r'preset is "minilm", expected a preset.* give it as start=.minilm.'):
        regard.train(samples.path("messages"), out="out", preset="minilm")
