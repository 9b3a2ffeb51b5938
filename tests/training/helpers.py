"""Short trainings, and what several tests of training need."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tests import fork_server

import regard
from regard.digests import with_digest
from regard.training.output.metrics_log import TrainingEvent, read_metrics
from regard.training.result import TrainResult

Train = Callable[..., TrainResult]
Digest = Callable[[Path], str]
QUICK: dict[str, Any] = {"preset": "tiny-bert", "epochs": 1, "batch_size": 8, "lr": 1e-3, "device": "cpu"}
LONG: dict[str, Any] = {"epochs": 6, "dev_fraction": 0.2, "log_every": 3}  # several epochs with a score each
CLOCK = ("tokens_per_second", "seconds")


class Write(Protocol):
    def __call__(self, path: Path, rows: Any) -> Path: ...


class Reviews(Protocol):
    def __call__(self, count: int, seed: int = 0) -> list[tuple[str, str]]: ...


WATER_ROWS = [  # few labels of two classes
    {"text": f"{word} water {number}", "label": label}
    for number in range(20)
    for word, label in (("cold", "a"), ("warm", "b"))
]


def train(data: Any, out: Path, **changed: Any) -> TrainResult:
    result: TrainResult = regard.train(data, out=out, **{**QUICK, **changed})
    return result


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without times."""
    return [{name: line[name] for name in line if name not in CLOCK} for line in read_metrics(folder)]


def stop_at(step: int, number: int = signal.SIGTERM) -> Callable[[TrainingEvent], None]:
    """A progress callback that sends this process a signal when that step is logged."""

    def on_event(event: TrainingEvent) -> None:
        if event.kind == "log" and event.step == step:
            os.kill(os.getpid(), number)

    return on_event


def edit_state(folder: Path, change: Callable[[dict[str, Any]], Any], *, new_digest: bool = False) -> None:
    """Change state.json by hand, or, with a new digest, as another program would."""
    path = folder / "state/state.json"
    content = json.loads(path.read_text())
    change(content)
    if new_digest:
        content = with_digest({name: content[name] for name in content if name != "digest"})
    path.write_text(json.dumps(content))


def run_ranks(code: str, *arguments: object, ranks: int) -> list[subprocess.CompletedProcess[str]]:
    """Run code in so many processes, with the variables that torchrun sets in each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "test", "WORLD_SIZE": str(ranks)}
    processes = []
    for rank in map(str, range(ranks)):
        variables = {**os.environ, **shared, "RANK": rank, "LOCAL_RANK": rank}
        processes.append(fork_server.start("-c", code, *arguments, env=variables))
    try:
        return [process.finish(timeout=240) for process in processes]
    finally:
        for process in processes:
            process.kill()
