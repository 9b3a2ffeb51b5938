"""When the training step is compiled: if that saves more time than it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.model.kernels.compiled import CACHE, cache_folder
from regard.training.engine.compilation import (
    CACHED,
    COST,
    COST_PER_LAYER,
    COSTS,
    DECIDE_AT,
    CompileCost,
    CompileSwitch,
    decide,
    surely_pays,
)
from regard.training.engine.speed import SpeedMeter


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)


class FakeStepper:
    compiled = False

    def __init__(self, halves: object = None) -> None:
        self.halves = halves

    def compile(self) -> None:
        self.compiled = True


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("regard.training.engine.speed.time.monotonic", lambda: self.now)
        monkeypatch.setattr("regard.training.engine.compilation.time.monotonic", lambda: self.now)


def test_long_trainings_compile_and_short_ones_do_not() -> None:
    assert decide(0.01, 100_000, 20.0).compile
    assert not decide(0.002, 5_000, 20.0).compile
    assert str(decide(0.01, 100_000, 20.0)) == "compiling the training step: saves about 200 s, takes about 20 s"
    assert str(decide(0.002, 5_000, 20.0)) == "step not compiled: saves about 2 s, takes about 20 s"


def test_only_a_certainly_long_training_compiles_its_first_step() -> None:
    bert_base_pretraining = 6.0 * 110e6 * 3e9
    sst2_with_minilm = 6.0 * 22e6 * 3e6
    assert surely_pays(bert_base_pretraining, 30.0)
    assert not surely_pays(sst2_with_minilm, 20.0)


def test_the_cost_is_estimated_and_then_remembered() -> None:
    cost = CompileCost(("config", 512), layers=6)
    assert cost.expected() == COST + 6 * COST_PER_LAYER
    cost.store(20.0)
    assert CompileCost(("config", 512), layers=6).expected() == CACHED * 20.0
    assert CompileCost(("config", 1024), layers=6).expected() == COST + 6 * COST_PER_LAYER
    cost.store(4.0)
    assert cost.expected() == 4.0
    folder = cache_folder()
    assert folder is not None
    assert list(json.loads((folder / COSTS).read_text()).values()) == [{"first": 20.0, "cached": 4.0}]


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"a": 1}'])
def test_a_damaged_file_of_costs_is_ignored(content: str) -> None:
    folder = cache_folder()
    assert folder is not None
    (folder / COSTS).write_text(content)
    cost = CompileCost("step", layers=1)
    assert cost.expected() == COST + COST_PER_LAYER
    cost.store(3.0)


@pytest.mark.parametrize(
    ("step_seconds", "halves", "compiles"),
    [(0.001, None, False), (0.2, None, True), (0.2, "converted at once", False), (1.0, "converted at once", True)],
)
def test_the_measured_time_of_steps_decides(
    monkeypatch: pytest.MonkeyPatch, step_seconds: float, halves: object, compiles: bool
) -> None:
    clock = Clock(monkeypatch)
    stepper: Any = FakeStepper(halves)
    switch = CompileSwitch("measure", CompileCost("step", layers=6), stepper)
    speed = SpeedMeter()
    notes = []
    for step in range(200):
        with switch.timed(speed):
            clock.now += 15.0 if switch.compiles_next else step_seconds
        speed.step(100)
        notes.append(switch.after_step(speed, 1000 - step))
    assert stepper.compiled is compiles
    assert [number for number, note in enumerate(notes) if note] == ([DECIDE_AT - 1] if compiles else [])
    assert switch.reason is not None
    assert switch.reason.startswith("compiling" if compiles else "step not compiled")


def test_compilation_is_timed_and_does_not_count_as_training_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    stepper: Any = FakeStepper()
    cost = CompileCost("step", layers=6)
    switch = CompileSwitch("yes", cost, stepper)
    speed = SpeedMeter()
    with switch.timed(speed):
        clock.now += 30.0
    speed.step(100)
    assert speed.seconds() == 0.0
    assert cost.expected() == CACHED * 30.0


@pytest.mark.parametrize("mode", ["no", "yes"])
def test_nothing_is_measured_unless_asked_to(monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    stepper: Any = FakeStepper()
    switch = CompileSwitch(mode, CompileCost("step", layers=6), stepper)
    speed = SpeedMeter()
    assert all(switch.after_step(speed, 10**9) is None for _ in range(2 * DECIDE_AT))
    assert not stepper.compiled
