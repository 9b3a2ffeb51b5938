"""A lock beside a folder: one owner, named to everybody else, and freed when it dies."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from regard import locks
from regard.errors import FolderError

OWNER = """
import sys, time
from pathlib import Path
from regard.locks import folder_lock
with folder_lock(Path(sys.argv[1]), activity="used", fix="Wait."):
    print("taken", flush=True)
    time.sleep(60)
"""


def folder_lock(folder: Path) -> AbstractContextManager[None]:
    return locks.folder_lock(folder, activity="used", fix="Wait.")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TIMEOUT", 0.1)


def refused(folder: Path) -> str:
    with pytest.raises(FolderError) as caught, folder_lock(folder):
        pytest.fail("two were let in")
    return str(caught.value)


def test_the_other_process_is_named_until_it_dies(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    command = [sys.executable, "-c", OWNER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        expected = f"{folder} is being used by process {other.pid} on {platform.node()}. Wait."
        assert refused(folder) == expected
        (folder.parent / "link").symlink_to("run")
        assert f"process {other.pid}" in refused(folder.parent / "link")
        with folder_lock(folder.parent / "other"):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with folder_lock(folder):
            pass
    assert [path.name for path in folder.parent.iterdir()] == ["link"]


def test_a_second_thread_of_one_process_is_refused_too(tmp_path: Path) -> None:
    with folder_lock(tmp_path / "run"):
        assert f"process {os.getpid()} " in refused(tmp_path / "run")
    with pytest.raises(KeyError), folder_lock(tmp_path / "run"):
        raise KeyError
    with folder_lock(tmp_path / "run"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_names_of_any_length(tmp_path: Path) -> None:
    with folder_lock(tmp_path / ("x" * 250)), folder_lock(tmp_path / ("x" * 249 + "y")):
        assert "is being used" in refused(tmp_path / ("x" * 250))


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_no_folder_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(FolderError), folder_lock(tmp_path / name):
        pytest.fail("it was let in")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(tmp_path / "file" / "run")


def test_without_file_locks_the_process_id_of_the_owner_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr("fcntl.flock", unsupported)
    lock = tmp_path / ".run.lock"
    lock.write_text(f"process {os.getppid()} on {platform.node()}")
    assert f"process {os.getppid()}" in refused(tmp_path / "run")
    for owner in ("", "nobody", "process 999999999 on " + platform.node(), f"process {os.getppid()} on another"):
        lock.write_text(owner)
        with folder_lock(tmp_path / "run"):
            assert lock.read_text().startswith(f"process {os.getpid()} ")
