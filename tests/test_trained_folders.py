"""The store of trained folders: what is the same training, and what happens to a folder that a test changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.trained_folders import TrainedFolders


@pytest.fixture
def calls() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def store(tmp_path: Path, calls: list[dict[str, Any]]) -> TrainedFolders:
    def write(data: Any, *, out: Path, progress: Any, **settings: Any) -> str:
        calls.append(settings)
        out.mkdir()
        (out / "run.json").write_text(str(settings))
        progress("end")
        return "result"

    def new_folder(name: str) -> Path:
        folder = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return folder

    return TrainedFolders(write, new_folder("root"), new_folder)


def rows_file(folder: Path, text: str = "text,label\na,b\n", name: str = "rows.csv") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_the_same_training_is_done_once(store: TrainedFolders, calls: list[dict[str, Any]], tmp_path: Path) -> None:
    first = store(rows_file(tmp_path / "a"), steps=2, preset="tiny-bert")
    assert store(rows_file(tmp_path / "b"), preset="tiny-bert", steps=2) == first
    assert store.result(rows_file(tmp_path / "b"), preset="tiny-bert", steps=2) == "result"
    assert store.events(rows_file(tmp_path / "b"), preset="tiny-bert", steps=2) == ["end"]
    assert len(calls) == 1
    others = [
        store(rows_file(tmp_path / "a"), steps=3, preset="tiny-bert"),
        store(rows_file(tmp_path / "c", "text,label\na,c\n"), steps=2, preset="tiny-bert"),
        store(rows_file(tmp_path / "c", name="more.csv"), steps=2, preset="tiny-bert"),
        store([{"text": "a", "label": "b"}], steps=2, preset="tiny-bert"),
        store(first, start=first),
    ]
    assert len({first, *others}) == len(calls) == 6


def test_a_copy_may_be_changed_and_a_stored_folder_may_not(store: TrainedFolders) -> None:
    run = store([{"text": "a"}], steps=2)
    copied = store([{"text": "a"}], steps=2, copy=True)
    (copied / "run.json").write_text("other")
    store.check_unchanged()
    (run / "run.json").write_text("other")
    with pytest.raises(AssertionError, match="copy=True"):
        store.check_unchanged()


def test_what_cannot_be_compared_is_no_key(store: TrainedFolders) -> None:
    with pytest.raises(TypeError, match="generator cannot be the key"):
        store(row for row in [{"text": "a"}])
    with pytest.raises(TypeError, match="on_step: a function cannot be the key"):
        store([{"text": "a"}], on_step=lambda step: step)
