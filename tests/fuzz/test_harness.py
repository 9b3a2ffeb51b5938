"""The harness notices what it is for."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fuzz import harness
from tests.fuzz.mutate import damaged, damaged_json, outside_file

from regard.errors import InputError


def _good(draw: random.Random, folder: Path) -> None:
    (folder / "a").write_text(str(draw.random()))
    assert (folder / "a").read_text()


def _refused(draw: random.Random, folder: Path) -> None:
    raise InputError("bad")


def _foreign(draw: random.Random, folder: Path) -> None:
    raise KeyError("a")


def _panic(draw: random.Random, folder: Path) -> None:
    raise type("PanicException", (BaseException,), {})("a panic")


def _hang(draw: random.Random, folder: Path) -> None:
    time.sleep(5)


def _hidden_hang(draw: random.Random, folder: Path) -> None:
    try:
        time.sleep(5)
    except BaseException:
        raise InputError("hidden") from None


def _memory(draw: random.Random, folder: Path) -> None:
    bytearray(300 << 20)


def _hidden_memory(draw: random.Random, folder: Path) -> None:
    try:
        bytearray(300 << 20)
    except MemoryError as error:
        raise InputError("hidden") from error


def _outside(draw: random.Random, folder: Path) -> None:
    (folder / "link").symlink_to(outside_file())
    try:
        (folder / "link").read_bytes()
    except OSError:
        raise InputError("bad") from None


def _outside_write(draw: random.Random, folder: Path) -> None:
    (folder / "link").symlink_to(outside_file())
    try:
        (folder / "link").write_text("lost")
    except OSError:
        raise InputError("bad") from None


def _outside_remove(draw: random.Random, folder: Path) -> None:
    try:
        outside_file().unlink()
    except OSError:
        raise InputError("bad") from None


def _outside_rename(draw: random.Random, folder: Path) -> None:
    (folder / "mine").write_text("a")
    try:
        (folder / "mine").replace(outside_file())
    except OSError:
        raise InputError("bad") from None


def _own_changes(draw: random.Random, folder: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "c").symlink_to(outside_file())
    (folder / "a" / "c").rename(folder / "a" / "d")
    (folder / "a" / "d").unlink()
    shutil.rmtree(folder / "a")


def _process(draw: random.Random, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


@pytest.mark.parametrize(
    ("fuzz", "kinds"),
    [
        (_good, set()),
        (_refused, set()),
        (_foreign, {"exception"}),
        (_panic, {"exception"}),
        (_hang, {"hang"}),
        (_hidden_hang, {"hang"}),
        (_memory, {"memory", "exception"}),
        (_hidden_memory, {"memory"}),
        (_outside, {"outside"}),
        (_outside_write, {"outside"}),
        (_outside_remove, {"outside"}),
        (_outside_rename, {"outside"}),
        (_own_changes, set()),
        (_process, {"process"}),
    ],
)
def test_kinds_of_failure(
    fuzz: Callable[[random.Random, Path], None], kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("toy")
    secret = outside_file().read_text()
    module.fuzz = fuzz  # type: ignore[attr-defined]
    monkeypatch.setattr(harness, "load", lambda name: module)
    result = harness.run_case("toy", 3, seconds=0.3 if "hang" in kinds else 10, memory=100 << 20)
    assert {failure.kind for failure in result} == kinds
    assert all(failure.case == 3 for failure in result)
    assert outside_file().read_text() == secret == "{}"  # nothing outside the folder is changed


def test_a_case_is_the_same_again() -> None:
    def content(case: int) -> tuple[bytes, bytes]:
        draw = random.Random(f"toy 0 {case}")
        return damaged(draw, b"some content\n" * 9), damaged_json(draw, {"a": [1, 2, {"b": "c"}], "d": None})

    assert [content(case) for case in range(50)] == [content(case) for case in range(50)]
    assert len({content(case) for case in range(50)}) == 50


def test_cases_that_failed_are_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "FAILURES", tmp_path / "failures.txt")
    (tmp_path / "failures.txt").write_text("# fuzzer, seed, case\ndata 0 7\n")
    harness.record("data", 0, [7, 30, 30])
    harness.record("state", 1, [2])
    assert harness.recorded("data") == [(0, 7), (0, 30)]
    assert harness.recorded("state") == [(1, 2)]
