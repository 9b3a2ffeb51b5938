"""Commands run in this process or in another one, for tests of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from regard import cli

Capture = pytest.CaptureFixture[str]
QUICK = ("--preset", "tiny-bert", "--epochs", "1", "--batch-size", "8", "--lr", "1e-3", "--device", "cpu")


def run(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    """The exit status, stdout and stderr of a command."""
    status = cli.main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return status, output.out, output.err


def start(*arguments: object, err: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A command that runs in a process of its own."""
    command = [sys.executable, "-m", "regard.cli", *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
