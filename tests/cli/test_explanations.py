"""Explanations in a terminal."""

from __future__ import annotations

import io

import pytest
from tests.look.tiny_models import model

from regard.cli.explanations import print_explanation
from regard.look.explain.explanation import Explanation


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_words_are_colored_in_a_terminal_and_control_characters_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    explanation = model("tiny-bert", {"sequence": 2}).explain("the soup\x1b[31m was warm")
    assert isinstance(explanation, Explanation)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_explanation(explanation, top=3)
    written = terminal.getvalue()
    assert "\x1b[31m" not in written
    assert "48;2;" in written


def test_windows_of_a_long_text_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    explanation = model("tiny-bert", {"sequence": 2}, max_tokens=12).explain("the soup was warm " * 6)
    print_explanation(explanation, top=1)
    assert f"it was read in {explanation.windows} windows." in capsys.readouterr().out
