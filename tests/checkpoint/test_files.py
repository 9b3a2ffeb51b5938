"""Nothing outside the folder is read; a folder is written whole or not at all."""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import fork_server

from regard.checkpoint import files
from regard.checkpoint.files import atomic_folder, read_json, write_json
from regard.checkpoint.folder import read_folder
from regard.checkpoint.manifest import MANIFEST
from regard.errors import FolderError
from regard.foreign import path_inside

# reading


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (tmp_path / "secret.json").write_text('{"secret": 1}')
    return made


@pytest.mark.parametrize(
    "name", ["../secret.json", "a/../../secret.json", "..", "/etc/passwd", "", "a\0b", "x" * 300, "\ud800.safetensors"]
)
def test_names_that_lead_out_or_nowhere_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(FolderError, match=r"leads out of the folder|cannot be used"):
        path_inside(folder, name)


@pytest.mark.parametrize("target", ["../secret.json", "/etc/passwd", "/nowhere/at/all", "config.json"])
def test_links_out_are_refused(folder: Path, target: str) -> None:
    (folder / "config.json").symlink_to(target)
    (folder / "part").symlink_to(folder.parent)
    with pytest.raises(FolderError, match="is a link out of the folder" if "/" in target else "config.json"):
        read_json(folder, "config.json")
    with pytest.raises(FolderError, match="is a link out of the folder"):
        path_inside(folder, "part/secret.json")


def test_links_inside_are_followed(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "config.json").write_text('{"a": 1}')
    (folder / "config.json").symlink_to("real/config.json")
    (folder / "other").symlink_to("real")
    assert read_json(folder, "config.json") == read_json(folder, "other/config.json") == {"a": 1}


def test_a_folder_may_be_named_by_a_link(folder: Path, tmp_path: Path) -> None:
    (folder / "config.json").write_text("{}")
    (tmp_path / "link").symlink_to(folder)
    assert read_json(tmp_path / "link", "config.json") == {}


def test_a_snapshot_of_the_hub_links_to_its_own_blobs_only(tmp_path: Path) -> None:
    entry, other = tmp_path / "models--o--n", tmp_path / "models--o--other"
    snapshot = entry / "snapshots" / "abc"
    for made in (entry / "blobs", other / "blobs", snapshot):
        made.mkdir(parents=True)
    (entry / "blobs" / "xyz").write_text('{"a": 1}')
    (other / "blobs" / "xyz").write_text('{"a": 2}')
    (snapshot / "config.json").symlink_to("../../blobs/xyz")
    (snapshot / "stolen.json").symlink_to("../../../models--o--other/blobs/xyz")
    assert read_json(snapshot, "config.json") == {"a": 1}
    with pytest.raises(FolderError, match="is a link out of the folder"):
        path_inside(snapshot, "stolen.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n  "b": oops}', "config.json line 2 column 8: not JSON: Expecting value"),
        (b"", "line 1 column 1: not JSON"),
        (b"[1]", "holds a list, expected a JSON object"),
        (b"\xff\xfe\x00", r"is not UTF-8 text \(byte 0\)"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"a": ' + b"1" * 5000 + b"}", "cannot be read"),
    ],
)
def test_broken_json_is_reported_with_its_line(folder: Path, content: bytes, message: str) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(FolderError, match=message):
        read_json(folder, "config.json")


def test_json_may_begin_with_a_mark(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf{}")
    assert read_json(folder, "config.json") == {}


def test_what_cannot_be_read_is_named(folder: Path) -> None:
    with pytest.raises(FolderError, match=r"model has no config\.json\. Expected a model folder"):
        read_json(folder, "config.json")
    (folder / "state").mkdir()
    (folder / "state/state.json").touch()
    with pytest.raises(FolderError, match=r"has no config\.json\. Its training was stopped: go on with .* --resume\."):
        read_json(folder, "config.json")
    (folder / "config.json").mkdir()
    with pytest.raises(FolderError, match="cannot be read: Is a directory"):
        read_json(folder, "config.json")


# writing


def filled(folder: Path, **contents: str) -> Path:
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_text(content)
    return folder


def contents(folder: Path) -> dict[str, str]:
    """What the files hold, but for the manifest."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "model"
    with atomic_folder(target) as new_folder:
        (new_folder / "a").write_text("new")
        assert not target.exists()
    assert contents(target) == {"a": "new"}
    assert names(target.parent) == ["model"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    with atomic_folder(filled(tmp_path / "model")) as new_folder:
        (new_folder / "a").write_text("new")
    assert contents(tmp_path / "model") == {"a": "new"}


def test_a_filled_folder_is_refused_without_overwrite(tmp_path: Path) -> None:
    target = filled(tmp_path / "model", a="old")
    with pytest.raises(FolderError, match=r"exists and is not empty\. Name a new folder"), atomic_folder(target):
        pytest.fail("the body ran")
    with atomic_folder(target, overwrite=True) as new_folder:
        (new_folder / "a").write_text("new")
    assert contents(target) == {"a": "new"}
    assert names(tmp_path) == ["model"]


def test_a_folder_that_fills_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with pytest.raises(FolderError, match="Nothing was changed"), atomic_folder(target):
        filled(target, b="someone else's")
    assert contents(target) == {"b": "someone else's"}


def test_a_file_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("I am a file")
    with pytest.raises(FolderError, match="is a file; expected a folder"), atomic_folder(tmp_path / "model"):
        pytest.fail("the body ran")
    with pytest.raises(FolderError, match="could not be written"), atomic_folder(tmp_path / "model" / "below"):
        pytest.fail("the body ran")
    assert names(tmp_path) == ["model"]


def test_foreign_files_are_carried_over_and_those_of_the_old_model_are_not(tmp_path: Path) -> None:
    old = {"notes.md": "mine", "config.json": '{"model_type": "bert"}', "model-00001-of-00002.safetensors": "stale"}
    old |= {"model.safetensors.index.json": "stale", "generation_config.json": "stale", "modules.json": "stale"}
    target = filled(tmp_path / "model", **old)
    filled(target / "1_Pooling", **{"config.json": "old", "readme": "mine"})
    filled(target / "target_tokenizer", **{"tokenizer.json": "stale"})  # of the other language of a translator
    (target / "link").symlink_to("notes.md")
    (target / "dangling").symlink_to("nothing")
    target.chmod(0o750)
    with atomic_folder(target, overwrite=True) as new_folder:
        (new_folder / "config.json").write_text("new")
        (new_folder / "model.safetensors").write_text("new")
        (new_folder / "1_Pooling").mkdir()
        (new_folder / "1_Pooling" / "config.json").write_text("new")
    result = contents(target)
    assert result.pop("link") == "mine"
    assert result == {
        "notes.md": "mine",
        "config.json": "new",
        "model.safetensors": "new",
        "1_Pooling/config.json": "new",
        "1_Pooling/readme": "mine",
    }
    assert (target / "link").is_symlink()
    assert (target / "dangling").readlink() == Path("nothing")
    assert target.stat().st_mode & 0o777 == 0o750


def test_a_link_to_a_folder_is_written_through(tmp_path: Path) -> None:
    target = filled(tmp_path / "far" / "model", a="old")
    (tmp_path / "link").symlink_to(target)
    with atomic_folder(tmp_path / "link", overwrite=True) as new_folder:
        (new_folder / "a").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert contents(target) == {"a": "new"}
    assert sorted(names(tmp_path) + names(tmp_path / "far")) == ["far", "link", "model"]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_a_failure_in_the_middle_leaves_the_old_folder(tmp_path: Path, error: BaseException) -> None:
    target = filled(tmp_path / "model", a="old", b="old")

    def write() -> None:
        with atomic_folder(target, overwrite=True) as new_folder:
            (new_folder / "a").write_text("new")
            raise error

    with pytest.raises(FolderError if isinstance(error, OSError) else type(error)) as caught:
        write()
    if isinstance(error, OSError):
        assert "No space left. Nothing was changed." in str(caught.value)
    assert contents(target) == {"a": "old", "b": "old"}
    assert names(tmp_path) == ["model"]


def failing(number: int, function: Callable[..., object], *, at: int = 1) -> Callable[..., object]:
    """The function, which fails with that error when it is called for the n-th time."""
    calls = iter(range(1, 1000))

    def call(*args: object, **settings: object) -> object:
        if next(calls) == at:
            raise OSError(number, os.strerror(number))
        return function(*args, **settings)

    return call


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])  # a file, the folder, the folder above it after the rename
def test_a_disk_that_fails_while_flushing_leaves_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, overwrite: bool
) -> None:
    target = filled(tmp_path / "model", a="old") if overwrite else tmp_path / "model"
    monkeypatch.setattr(os, "fsync", failing(errno.EIO, os.fsync, at=at))
    with (
        pytest.raises(FolderError, match=r"could not be written: Input/output error\. Nothing was changed"),
        atomic_folder(target, overwrite=overwrite) as new_folder,
    ):
        (new_folder / "a").write_text("new")
    assert names(tmp_path) == (["model"] if overwrite else [])
    assert not overwrite or contents(target) == {"a": "old"}


def test_a_full_disk_leaves_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = filled(tmp_path / "model", a="old")
    monkeypatch.setattr(Path, "write_text", failing(errno.ENOSPC, Path.write_text))
    with (
        pytest.raises(FolderError, match="No space left on device"),
        atomic_folder(target, overwrite=True) as new_folder,
    ):
        write_json(new_folder / "a", {})
    assert contents(target) == {"a": "old"}
    assert names(tmp_path) == ["model"]


def test_where_names_cannot_be_exchanged_they_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = filled(tmp_path / "model", a="old")
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    with atomic_folder(target, overwrite=True) as new_folder:
        (new_folder / "a").write_text("new")
    assert contents(target) == {"a": "new"}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", failing(errno.EACCES, Path.replace, at=2))
        with pytest.raises(FolderError, match="Permission denied"), atomic_folder(target, overwrite=True) as new_folder:
            (new_folder / "a").write_text("newer")
    assert contents(target) == {"a": "new"}
    assert names(tmp_path) == ["model"]


# a kill

# Starts a process that writes the folder again and again for every line it reads; says each writing, and its end.
WRITER = """
import dataclasses, itertools, os, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from regard.checkpoint.write_folder import write_folder
from regard.checkpoint.source import from_preset

def say(what):
    os.write(1, f"{what}\\n".encode())

made = from_preset("tiny-bert", dtype=torch.float32)

def write(folder):
    say(os.getpid())
    for number in itertools.count():
        for parameter in made.network.parameters():
            parameter.data.fill_(number)
        stamped = dataclasses.replace(made, hf_config={"model_type": "bert", "vocab_size": 100, "hidden_size": 32,
            "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "stamp": number})
        write_folder(Path(folder), stamped, overwrite=True, shard_bytes=20_000)
        say(number)

for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        write(sys.argv[1])
    os.waitpid(child, 0)
    say("gone")
"""


def test_a_kill_at_any_moment_leaves_a_whole_folder(tmp_path: Path) -> None:
    target, draw, result = tmp_path / "model", random.Random(0), set()
    with fork_server.start("-c", WRITER, target, stdin=fork_server.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(12):
            process.stdin.write("start\n")
            child = int(process.stdout.readline())
            assert process.stdout.readline() == "0\n"
            before = [process.stdout.readline() for _ in range(draw.randrange(3))]  # whole writings, however slow
            time.sleep(draw.uniform(0, 0.05))
            os.kill(child, signal.SIGKILL)
            message = before + list(iter(process.stdout.readline, "gone\n"))
            checkpoint = read_folder(target)
            stamp = checkpoint.hf_config["stamp"]
            values = {
                value for tensor in checkpoint.network.state_dict().values() for value in tensor.unique().tolist()
            }
            assert values == {stamp}  # every tensor of every shard is of the same writing as config.json
            assert stamp in (len(message), len(message) + 1)
            result.add(stamp)
    assert len(result) > 1
