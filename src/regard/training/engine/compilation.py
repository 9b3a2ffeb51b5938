"""Whether compiling the training step pays.

A training on a GPU starts with the plain step, recorded as a CUDA graph, so that it need not wait for the compiler.
After `DECIDE_AT` steps, their measured time and the number of steps left decide: the step is compiled if that saves
more time than it takes. Only a training that is certainly long compiles its first step.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch

from regard.model.kernels.compiled import cache_folder
from regard.training.engine.speed import SpeedMeter
from regard.training.engine.stepper import Stepper

CompileMode = Literal["no", "yes", "measure"]

MEASURE_FROM = 16  # steps before the measurement: the first ones load kernels
DECIDE_AT = 64  # steps after which is decided
SAVING = 0.2  # fraction of the time of a step that compilation saves, at least; 0.2 to 0.25 were measured for MiniLM,
CONVERTED_SAVING = 0.03  # and 0 to 0.04 of a step whose weights are converted at once, which takes 0.2 less already
COST = 8.0  # seconds that compilation takes: this, of which half is the import of the compiler,
COST_PER_LAYER = 2.0  # and this for each layer; 18 to 30 s were measured for 6 to 12 layers
CACHED = 0.35  # of that, if the compiled kernels are in the cache
COSTS = "seconds.json"  # in the cache folder: what compilation took, by step


class CompileDecision(NamedTuple):
    """Whether to compile, with the seconds that it is expected to save and to take."""

    compile: bool
    saves: float
    takes: float

    def __str__(self) -> str:
        estimate = f"saves about {self.saves:.0f} s, takes about {self.takes:.0f} s"
        return f"compiling the training step: {estimate}" if self.compile else f"step not compiled: {estimate}"


def decide(seconds_per_step: float, steps_left: int, takes: float, *, saving: float = SAVING) -> CompileDecision:
    """Compile if the steps left save more time than compilation takes."""
    saves = saving * seconds_per_step * steps_left
    return CompileDecision(saves > takes, saves, takes)


def surely_pays(flops: float, takes: float) -> bool:
    """Whether a training of so many operations is long enough on any GPU, with a factor of two to spare."""
    fastest = 5e14  # operations per second that a training reaches on the fastest GPUs
    return decide(flops / fastest, 1, 2 * takes).compile


class CompileCost:
    """Seconds that the compilation of a step takes: as measured on this machine before, or estimated."""

    def __init__(self, step: object, layers: int) -> None:
        self.key = hashlib.sha256(repr(step).encode()).hexdigest()[:16]
        self.layers = layers

    def expected(self) -> float:
        measured = self._read().get(self.key)
        if not isinstance(measured, dict):
            return COST + COST_PER_LAYER * self.layers
        return float(measured.get("cached") or CACHED * measured["first"])

    def store(self, seconds: float) -> None:
        """Remember what it took; for the next training the kernels are in the cache."""
        folder = cache_folder()
        if folder is None:
            return
        measured = self._read()
        name = "cached" if self.key in measured else "first"
        measured.setdefault(self.key, {})[name] = round(seconds, 2)
        with contextlib.suppress(OSError):
            new_file = folder / f"{COSTS}.part"
            new_file.write_text(json.dumps(measured, indent=1), encoding="utf-8")
            new_file.replace(folder / COSTS)

    def _read(self) -> dict[str, Any]:
        folder = cache_folder()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if folder is not None:
                content = json.loads((folder / COSTS).read_text(encoding="utf-8"))
                return {str(key): value for key, value in content.items()}
        return {}


class CompileSwitch:
    """Measures the first steps after a start or a resumption, and compiles the next ones if that pays."""

    def __init__(self, mode: CompileMode, cost: CompileCost | None, stepper: Stepper) -> None:
        self.mode, self.cost, self.stepper = mode, cost, stepper
        self.reason = "compiled from the first step on" if mode == "yes" else None
        self.compiles_next = mode == "yes"
        self._steps = 0
        self._measured_from = 0.0

    @contextlib.contextmanager
    def timed(self, speed: SpeedMeter) -> Iterator[None]:
        """Around a step: if it compiles, the time that takes is remembered, and it does not count as training speed."""
        if not self.compiles_next or self.cost is None:
            yield
            return
        self.compiles_next = False
        with speed.pause():
            began = time.monotonic()
            yield
            torch.cuda.synchronize()
            self.cost.store(time.monotonic() - began)

    def after_step(self, speed: SpeedMeter, steps_left: int) -> str | None:
        """Decide when it is time to. Returns a message if the next step compiles."""
        self._steps += 1
        if self.mode != "measure" or self.cost is None or self._steps not in (MEASURE_FROM, DECIDE_AT):
            return None
        torch.cuda.synchronize()
        seconds = speed.seconds()
        if self._steps == MEASURE_FROM:
            self._measured_from = seconds
            return None
        step_seconds = (seconds - self._measured_from) / (DECIDE_AT - MEASURE_FROM)
        saving = SAVING if self.stepper.halves is None else CONVERTED_SAVING
        decision = decide(step_seconds, steps_left, self.cost.expected(), saving=saving)
        self.reason = str(decision)
        if not decision.compile:
            return None
        self.stepper.compile()
        self.compiles_next = True
        return self.reason
