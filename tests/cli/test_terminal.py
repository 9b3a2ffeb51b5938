"""What reaches the terminal: control characters are shown, long arguments cut, missing letters and streams no crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard import cli
from regard.cli import main
from regard.cli.output import print_json, print_status, print_table
from regard.errors import (
    DataError,
    FolderError,
    InputError,
    RegardError,
    escape_control_characters,
    pluralize,
    shorten_message,
)

ESCAPES = "\x1b]0;title\x07\x1b[31mred\x9b2J\x7f\r\u202eabc"


def run(arguments: list[str], *, shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own; `shell` closes a stream."""
    command = f'exec "$0" -m regard.cli "$@" {shell}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *arguments],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
        timeout=120,
    )


@pytest.fixture
def replace_doctor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a function in the place of `regard doctor`."""

    def put(work: Any) -> None:
        there = cli.COMMANDS["doctor"]
        monkeypatch.setitem(cli.COMMANDS, "doctor", there._replace(run=lambda settings: work()))

    return put


# control characters and lengths


@pytest.mark.parametrize("kind", [RegardError, InputError, FolderError, DataError])
def test_errors_show_control_characters_and_are_short(kind: type[RegardError]) -> None:
    message = str(kind(f'the label "{ESCAPES}" and "{"x" * 100_000}" and {"y" * 100_000}'))
    assert escape_control_characters(message) == message
    assert "\\u001b[31m" in message
    assert len(message) < 2100


def test_what_an_error_says_to_do_stays_at_its_end() -> None:
    message = str(DataError("holds " + "word " * 50_000, file="a.csv", fix="Remove it."))
    assert message.startswith("a.csv: holds word")
    assert message.endswith("Remove it.")
    assert len(message) < 2100


def test_ordinary_messages_stay_as_they_are() -> None:
    words = "Größe\n  日本 – “x”…\tend"
    assert escape_control_characters(words) == words
    command = 'python -c "' + "a command; " * 20 + '"'
    assert shorten_message(command) == command


def test_control_characters_do_not_reach_stdout_or_stderr(
    replace_doctor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        print(f"raw {ESCAPES}")
        print_table([("left", ESCAPES)])
        print_json({"text": ESCAPES})
        print_status(ESCAPES)
        raise InputError(ESCAPES)

    replace_doctor(work)
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert escape_control_characters(out) == out
    assert escape_control_characters(err) == err
    assert json.loads(out.splitlines()[-1])["text"] == ESCAPES


@pytest.mark.parametrize(
    "arguments",
    [[ESCAPES], ["x" * 100_000], ["info", "x" * 100_000], ["embed", "minilm", "a", "--dtype", ESCAPES * 9000]],
)
def test_arguments_are_not_repeated_at_length_nor_raw(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) in (1, 2)
    out, err = capsys.readouterr()
    assert escape_control_characters(out + err) == out + err
    assert 0 < len(out + err) < 2500


# letters and streams that are missing


def test_an_ascii_terminal_gets_escapes(trained: Path) -> None:
    result = run(["predict", str(trained), "Größe 日本 𝔘"], PYTHONIOENCODING="ascii", LC_ALL="C")
    assert result.returncode == 0, result.stderr
    assert b"Gr\\u00f6\\u00dfe" in result.stdout


def test_closed_stdout_is_an_error() -> None:
    result = run(["info", "tiny-bert"], shell=">&-")
    assert result.returncode == 1
    assert result.stderr.decode().splitlines() == [
        "regard: standard output is closed, so nothing can be printed. Redirect it to a file or /dev/null."
    ]


def test_closed_stderr_is_no_error_and_nothing_takes_its_place() -> None:
    result = run(["info", "tiny-bert"], shell="2>&-")
    assert result.returncode == 0
    assert result.stdout.startswith(b"family")
    assert run(["info", "nothing-like-it"], shell="2>&-").stdout == b""


def test_closed_stdin_is_an_error(trained: Path) -> None:
    result = run(["predict", str(trained), "--input", "-"], shell="<&-")
    assert result.returncode == 1
    assert result.stderr.decode().count("\n") == 1
    assert "standard input" in result.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_stdout_is_an_error() -> None:
    result = run(["info", "tiny-bert"], shell=">/dev/full")
    assert result.returncode == 1
    assert result.stderr.decode() == "regard: No space left on device\n"


# memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:113] data. DefaultCPUAllocator: not enough memory: you tried"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000000000 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    ],
)
def test_memory_that_ran_out_is_one_line(
    error: Exception, replace_doctor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        raise error

    replace_doctor(work)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err.startswith("regard: there is not enough memory.")


def test_a_mistake_of_our_own_keeps_its_traceback(replace_doctor: Any) -> None:
    def work() -> None:
        raise RuntimeError("a mistake")

    replace_doctor(work)
    with pytest.raises(RuntimeError, match="a mistake"):
        main(["doctor"])


# --batch-tokens, plurals


@pytest.mark.parametrize(
    ("number", "noun", "plural", "expected"),
    [(1, "text", None, "1 text"), (0, "text", None, "0 texts"), (2000, "entry", "entries", "2,000 entries")],
)
def test_counted(number: int, noun: str, plural: str | None, expected: str) -> None:
    assert pluralize(number, noun, plural) == expected
