"""Commands run in this process or in another one, for tests of the command line."""

from __future__ import annotations

import pytest
from tests import fork_server

from regard import cli

Capture = pytest.CaptureFixture[str]
QUICK = ("--preset", "tiny-bert", "--epochs", "1", "--batch-size", "8", "--lr", "1e-3", "--device", "cpu")


def run(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    """The exit status, stdout and stderr of a command."""
    status = cli.main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return status, output.out, output.err


def start(*arguments: object, err: int = fork_server.PIPE) -> fork_server.ForkedProcess:
    """A command that runs in a process of its own."""
    return fork_server.start("-m", "regard.cli", *arguments, stderr=err)
