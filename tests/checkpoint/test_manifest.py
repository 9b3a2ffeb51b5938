"""Overwriting deletes what regard has written, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.checkpoint.files import atomic_folder
from regard.checkpoint.manifest import MANIFEST, files_of, owned, tokenizer_files

MINE = ("curves.png", "state/notes.txt", "vocab.txt", "embeddings.safetensors", "lexicon.model", "run.json")


def write(folder: Path, *names: str, text: str = "mine") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in files_of(folder) - {MANIFEST}}


def overwrite(folder: Path, *names: str) -> None:
    with atomic_folder(folder, overwrite=True) as new_folder:
        write(new_folder, *names, text="new")


def test_what_the_manifest_does_not_name_stays(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    overwrite(folder, "config.json", "model.safetensors", "part/one", "part/two")
    write(folder, *MINE, "part/three")
    (folder / "empty").mkdir()
    overwrite(folder, "config.json", "part/two")
    assert texts(folder) == {"config.json": "new", "part/two": "new", **dict.fromkeys([*MINE, "part/three"], "mine")}
    assert (folder / "empty").is_dir()
    assert owned(folder) == {MANIFEST, "config.json", "part/two"}


def test_links_out_of_the_folder_stay_links(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    write(tmp_path / "far", "file")
    overwrite(tmp_path / "run", "config.json")
    (tmp_path / "run/far").symlink_to(tmp_path / "far")
    overwrite(tmp_path / "run", "other.json")
    assert (tmp_path / "run/far").readlink() == tmp_path / "far"
    assert texts(tmp_path / "far") == {"file": "mine"}


def test_a_folder_without_a_manifest_keeps_what_is_not_recognized(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    write(folder, *MINE, "README.md", "metrics.jsonl", "tokenizer.json")
    assert owned(folder) == set()
    write(folder, "model.safetensors", "model-00001-of-00002.safetensors", text="weights")
    assert owned(folder) == {"model.safetensors", "model-00001-of-00002.safetensors"}
    overwrite(folder, "config.json")
    assert texts(folder) == {
        "config.json": "new",
        **dict.fromkeys([*MINE, "README.md", "metrics.jsonl", "tokenizer.json"], "mine"),
    }


def test_a_folder_of_an_older_version_is_recognized(trained: Path, tmp_path: Path) -> None:
    model = regard.load(trained)
    for name in files_of(trained) - {MANIFEST}:
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    assert owned(tmp_path) == files_of(tmp_path)
    write(tmp_path, "notes.md", "lexicon.model", "state/mine")
    model.save(tmp_path, overwrite=True)
    there = files_of(tmp_path)
    assert {"notes.md", "lexicon.model", "state/mine", "README.md"} <= there
    assert there.isdisjoint({"metrics.jsonl", "curves.png"})


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"files": ["notes.md"]}', '{"files": 7, "digest": 1}', "[" * 9999, "\udcff"]
)
def test_a_damaged_manifest_names_nothing(tmp_path: Path, content: str) -> None:
    overwrite(tmp_path / "run", "a")
    write(tmp_path / "run", "notes.md")
    (tmp_path / "run" / MANIFEST).write_text(content, errors="surrogateescape")
    overwrite(tmp_path / "run", "b")
    assert texts(tmp_path / "run") == {"a": "new", "b": "new", "notes.md": "mine"}


def test_a_tokenizer_takes_no_model_away(tmp_path: Path) -> None:
    """Of a folder with a model, `regard tokenizer --overwrite` replaces the tokenizer alone."""
    folder = tmp_path / "model"
    overwrite(folder, "config.json", "model.safetensors", "tokenizer.json", "vocab.txt")
    with atomic_folder(folder, overwrite=True, drop=tokenizer_files) as new_folder:
        write(new_folder, "tokenizer.json", text="newer")
    assert texts(folder) == {"config.json": "new", "model.safetensors": "new", "tokenizer.json": "newer"}
    assert json.loads((folder / MANIFEST).read_text())["files"] == sorted(texts(folder))
