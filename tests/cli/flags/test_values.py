"""Values of flags: what may be left out, and wrong numbers."""

from __future__ import annotations

import pytest
import tyro
from tests.cli.helpers import Capture

from regard import cli
from regard.cli.flags.values import FLAG_PARSERS
from regard.training.from_scratch.model_settings import ModelSettings


@pytest.mark.parametrize("command", ["train", "pretrain", "evaluate", "generate", "translate", "vectors"])
def test_help_never_shows_none(capsys: Capture, command: str) -> None:
    assert cli.main([command, "--help"]) == 0
    assert "None" not in capsys.readouterr().out


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("True", True), ("no", False), ("false", False)])
def test_a_truth_value_without_a_default_is_written_as_a_word(word: str, value: bool) -> None:
    settings = tyro.cli(ModelSettings, args=["--norm-first", word], registry=FLAG_PARSERS)
    assert settings.norm_first is value
