"""Tokens per second: those of the last steps, without compiling, scoring and saving."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.training.engine import speed
from regard.training.engine.speed import SpeedMeter
from regard.training.engine.stepper import Stepper
from regard.training.output.metrics_log import read_metrics
from regard.training.result import TrainResult

Train = Callable[..., TrainResult]


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(speed, "time", made)
    return made


def steps(meter: SpeedMeter, clock: Clock, count: int, *, seconds: float) -> None:
    for _ in range(count):
        clock.now += seconds
        meter.step(10)


def test_the_speed_is_that_of_the_last_interval(clock: Clock) -> None:
    meter = SpeedMeter()
    steps(meter, clock, 1, seconds=60.0)  # compiles
    steps(meter, clock, 4, seconds=1.0)
    assert meter.report() == pytest.approx(10.0)
    with meter.pause():
        clock.now += 1000.0  # scores and saves
    steps(meter, clock, 5, seconds=0.5)
    assert meter.report() == pytest.approx(20.0)
    assert meter.mean() == pytest.approx(90 / 6.5)


def test_a_first_step_alone_is_reported_but_is_in_no_mean(clock: Clock) -> None:
    meter = SpeedMeter()
    steps(meter, clock, 1, seconds=50.0)
    assert meter.report() == pytest.approx(0.2)
    with meter.pause():
        clock.now += 7.0
    assert meter.mean() is None
    steps(meter, clock, 1, seconds=1.0)
    assert meter.report() == pytest.approx(10.0)
    assert meter.mean() == pytest.approx(10.0)


def test_a_slow_first_step_is_not_in_later_lines(small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the first step compiled for a second: no line and no result counts it."""
    first, part = [True], Stepper.part

    def slow(self: Stepper, inputs: Any) -> None:
        if first:
            first.pop()
            time.sleep(1.0)
        part(self, inputs)

    monkeypatch.setattr(Stepper, "part", slow)
    done = small(tmp_path / "run", epochs=3, dev_fraction=0.2, log_every=2)
    reported = [line["tokens_per_second"] for line in read_metrics(tmp_path / "run") if line["kind"] == "log"]
    assert min(reported) > max(reported) / 5, "with the first step it would be a twentieth"
    assert done.tokens_per_second is not None
    assert min(reported) <= done.tokens_per_second <= max(reported)
    again = small(tmp_path / "run", epochs=3, dev_fraction=0.2, log_every=2, resume=True)
    assert again.tokens_per_second == done.tokens_per_second
