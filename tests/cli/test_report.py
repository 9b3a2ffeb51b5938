"""Tables of classes in a terminal: small ones whole, large ones by their worst lines."""

from __future__ import annotations

import numpy as np
import pytest

from regard.cli.report import WIDTH, print_report
from regard.metrics.meter import LabelMeter
from regard.metrics.report import ClassificationReport


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
