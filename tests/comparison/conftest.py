"""Two small trained classifiers, and data for them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.trained_folders import TrainedFolders

from regard import samples

COLORS = ["red", "blue", "green", "gray"]


@pytest.fixture(autouse=True)
def without_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture of each training, which takes longer than the training."""
    monkeypatch.setattr("regard.training.output.write_run.draw_curves", lambda *_, **__: None)


@pytest.fixture(scope="session")
def messages() -> Path:
    return samples.path("messages")


def write_rows(path: Path, rows: int, *, first: int = 0, extra: bool = False) -> Path:
    """A CSV file of two classes that a small network can tell apart."""
    lines = ["text,label,author" if extra else "text,label"]
    for number in range(first, first + rows):
        label = "warm" if number % 2 else "cold"
        words = f"{label} {COLORS[number % 4]} number {number} of many"
        lines.append(f"{words},{label},writer {number % 3}" if extra else f"{words},{label}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def two_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data") / "two.csv", 240, extra=True)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, trained_folder: TrainedFolders) -> dict[str, Path]:
    """A model that has learned nothing, and one that has. They have seen other rows."""
    root = tmp_path_factory.mktemp("models")
    rows = write_rows(root / "rows.csv", 244, first=1000, extra=True)
    for name, count in {"weak": 1, "good": 60}.items():
        run = trained_folder(rows, preset="tiny-bert", steps=count, lr=0.01, dev_fraction=0)
        shutil.copytree(run, root / name)
    return {name: root / name for name in ("weak", "good")}
