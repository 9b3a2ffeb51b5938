"""Two small trained classifiers, and data for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard import samples

COLORS = ["red", "blue", "green", "gray"]


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
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model that has learned nothing, and one that has. They have seen other rows."""
    root = tmp_path_factory.mktemp("models")
    rows = write_rows(root / "rows.csv", 244, first=1000, extra=True)
    steps = {"weak": 1, "good": 60}
    for name, count in steps.items():
        regard.train(rows, preset="tiny-bert", out=root / name, steps=count, lr=0.01, dev_fraction=0)
    return {name: root / name for name in steps}
