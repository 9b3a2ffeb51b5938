"""Small trainings: a few dozen rows, a tiny network."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.helpers import LONG, Train, run_ranks, stop_at
from tests.training.starting import TEXTS

from regard import samples
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer
from regard.training.engine.loop import Stopped
from regard.training.result import TrainResult
from regard.training.train import train

os.environ["OMP_NUM_THREADS"] = "1"  # of processes that are started here: the same sums everywhere
SMALL: dict[str, Any] = {"preset": "tiny-bert", "device": "cpu", "batch_tokens": 512, "lr": 1e-3}
# What every rank runs; one of them stops itself after some step, and then all of them do.
RANKS = """
import json, os, signal, sys, warnings
from regard.training.engine.loop import Stopped
from regard.training.output import write_run
from regard.training.output.metrics_log import TrainingEvent
import regard

def on_event(event):
    if event.kind == "log" and event.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGTERM)

warnings.simplefilter("error")
write_run.draw_curves = lambda *_, **__: None  # as in the fixture `alone`
try:
    getattr(regard, sys.argv[3])(**json.loads(sys.argv[1]), progress=on_event)
except Stopped:
    pass
"""


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 labeled messages."""
    path = tmp_path_factory.mktemp("rows") / "messages.csv"
    with samples.path("messages").open(encoding="utf-8", newline="") as source, path.open("w", newline="") as out:
        csv.writer(out).writerows(list(csv.reader(source))[:49])
    return path


@pytest.fixture(scope="module")
def small_tokenizer() -> Tokenizer:
    return train_tokenizer_from_texts(TEXTS * 5, size=40)


@pytest.fixture
def encoder_folder(tmp_path: Path, small_tokenizer: Tokenizer) -> Path:
    """A folder of an encoder without a head."""
    folder = tmp_path / "encoder"
    write_folder(folder, from_preset("tiny-bert", heads={}, seed=5, vocabulary=small_tokenizer.size))
    small_tokenizer.save(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("regard", None)  # marks weights that were never trained
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, and no picture of curves: both cost more than the training."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr("regard.training.output.write_run.draw_curves", lambda *_, **__: None)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def small_settings() -> dict[str, Any]:
    return dict(SMALL)


@pytest.fixture
def small(rows: Path) -> Train:
    """A training of a few steps."""

    def run(out: Path, **settings: Any) -> TrainResult:
        return train(rows, out=out, **{**SMALL, **settings})

    return run


@pytest.fixture
def digest() -> Callable[[Path], str]:
    """What tells two models apart."""
    return lambda folder: hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture
def torchrun(rows: Path) -> Callable[..., None]:
    """A training on several ranks, as torchrun starts them."""

    def run(out: Path, *, call: str = "train", ranks: int = 2, stop: int = 0, **settings: Any) -> None:
        arguments = {**settings, "out": str(out)}
        if call == "train":
            arguments = {**SMALL, **arguments, "data": str(rows)}
        for done in run_ranks(RANKS, json.dumps(arguments), stop, call, ranks=ranks):
            assert done.returncode == 0, done.stderr[-3000:]
            assert "Warning" not in done.stderr, done.stderr

    return run


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole") / "run"


@pytest.fixture
def whole(whole_run: Path, small: Train) -> Path:
    """A training that was not interrupted, with dropout, scores and best weights."""
    if not whole_run.exists():
        small(whole_run, **LONG)
    return whole_run


@pytest.fixture(scope="session")
def stopped_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stopped") / "run"


@pytest.fixture
def stopped(stopped_run: Path, small: Train, tmp_path: Path) -> Path:
    """A copy of a training that was stopped after its first score, so that it has best weights."""
    if not stopped_run.exists():
        with pytest.raises(Stopped):
            small(stopped_run, **LONG, progress=stop_at(9))
    shutil.copytree(stopped_run, tmp_path / "run")
    return tmp_path / "run"
