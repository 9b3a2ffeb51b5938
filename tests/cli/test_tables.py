"""Tables and explanations in a terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tests.look.tiny_models import model

from regard.cli.comparison_tables import print_comparison
from regard.cli.explanations import print_explanation
from regard.cli.output import format_rate
from regard.cli.report import WIDTH, print_report
from regard.comparison.result import Comparison, LearningCurve, ModelResult, PairResult, RuleOfThumb
from regard.look.explain.explanation import Explanation
from regard.metrics.confidence import Score
from regard.metrics.meter import LabelMeter
from regard.metrics.report import ClassificationReport


@pytest.mark.parametrize(
    ("count", "seconds", "message"),
    [(11, 57.2, "0.19 per second"), (50, 10.0, "5 per second"), (90_000, 60.0, "1,500 per second")],
)
def test_a_slow_speed_is_not_none(count: int, seconds: float, message: str) -> None:
    assert format_rate(count, seconds) == message


def printed(classes: int, capsys: pytest.CaptureFixture[str]) -> str:
    draw = np.random.default_rng(0)
    meter = LabelMeter([f"intent {number} of many" for number in range(classes)])
    meter.add_many(draw.integers(0, classes, 900), draw.integers(0, classes, 900))
    print_report(meter.report())
    return capsys.readouterr().out


def test_a_wide_matrix_has_numbered_columns(capsys: pytest.CaptureFixture[str]) -> None:
    message = printed(12, capsys)
    assert "\n12 intent 11 of many " in message
    assert max(map(len, message.splitlines())) <= WIDTH


def test_many_classes_show_the_worst_and_the_most_confused(capsys: pytest.CaptureFixture[str]) -> None:
    message = printed(150, capsys)
    assert "The 20 of 150 with the lowest F1; --json has all." in message
    assert "\nmost confused\ntrue " in message
    assert len(message.splitlines()) < 45


def test_wide_letters_keep_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    meter = LabelMeter(["好评", "bad"])
    meter.add("好评", "好评")
    meter.add("bad", "好评")
    print_report(meter.report())
    lines = capsys.readouterr().out.splitlines()
    assert "好评     1    1" in lines
    assert "bad      .    ." in lines


def test_nothing_is_printed_without_classes(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(ClassificationReport())
    assert capsys.readouterr().out == ""


SCORE = Score(0.5, 0.4, 0.6)


def test_models_pairs_rule_and_curves(capsys: pytest.CaptureFixture[str]) -> None:
    good = ModelResult("good", "fine-tuned", {"f1": SCORE}, (0.5,), 1000, 150.0, 2.5, 400.0, 10**9, 4000)
    pair = PairResult("good", "bad", "f1", 0.1, 0.0, 0.2, 0.1, 0.1, 0.1, None, None, 900, "good", "good beats bad")
    curve = LearningCurve("good", (10, 20), (SCORE, SCORE), {40: SCORE}, SCORE, "more rows help")
    result = Comparison(
        "tag", "f1", 50, 100, 10, (good, ModelResult("bad", "baseline", error="it broke")), (pair,), "good is best.",
        "good", "good", RuleOfThumb(1, 1.0, 1.0, "n-grams", "the rule."), (curve,), notes=("a note",),
    )  # fmt: skip
    print_comparison(result)
    shown = capsys.readouterr().out
    for part in ("0.5000 (0.4000 to 0.6000)", "2.5 min", "2.5 ms", "1.0 GB", "4.0 kB", "failed", "bad: it broke"):
        assert part in shown
    for line in (
        "good beats bad.",
        "good is best.",
        "the rule.",
        "more rows help.",
        "Note: a note.",
        "learning curve of good",
    ):
        assert line in shown


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
