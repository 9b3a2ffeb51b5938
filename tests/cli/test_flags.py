"""Values of flags: what may be left out, and wrong numbers."""

from __future__ import annotations

import pytest
from tests.cli.helpers import Capture

from regard import cli


@pytest.mark.parametrize("command", ["train", "pretrain", "evaluate", "generate", "translate", "vectors"])
def test_help_never_shows_none(capsys: Capture, command: str) -> None:
    assert cli.main([command, "--help"]) == 0
    assert "None" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--epochs", "two"], 'Error parsing --epochs: "two" was given, expected a number.'),
        (["--steps", "1.5"], 'Error parsing --steps: "1.5" was given, expected a whole number.'),
        (["--seed", "x"], 'Error parsing --seed: "x" was given, expected a whole number.'),
        (["--schedule", "None"], "invalid choice 'None' for argument '--schedule'. Expected one of ('linear',"),
    ],
)
def test_a_wrong_value_is_explained(capsys: Capture, argv: list[str], message: str) -> None:
    assert cli.main(["train", "data.csv", "--out", "run", *argv]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "NoneType" not in err
