"""The harness notices what it is for."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fuzz import harness
from tests.fuzz.mutate import damaged, damaged_json

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
    (folder / "link").symlink_to("/etc/hostname")
    try:
        (folder / "link").read_bytes()
    except OSError:
        raise InputError("bad") from None


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
        (_process, {"process"}),
    ],
)
def test_kinds_of_failure(
    fuzz: Callable[[random.Random, Path], None], kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("toy")
    module.fuzz = fuzz  # type: ignore[attr-defined]
    monkeypatch.setattr(harness, "load", lambda name: module)
    found = harness.run_case("toy", 3, seconds=0.3 if "hang" in kinds else 10, memory=100 << 20)
    assert {failure.kind for failure in found} == kinds
    assert all(failure.case == 3 for failure in found)


def test_a_case_is_the_same_again() -> None:
    def content(case: int) -> tuple[bytes, bytes]:
        draw = random.Random(f"toy 0 {case}")
        return damaged(draw, b"some content\n" * 9), damaged_json(draw, {"a": [1, 2, {"b": "c"}], "d": None})

    assert [content(case) for case in range(50)] == [content(case) for case in range(50)]
    assert len({content(case) for case in range(50)}) == 50
