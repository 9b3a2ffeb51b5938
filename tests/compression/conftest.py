"""One trained teacher, with its rows, for all tests."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from tests.trained_folders import TrainedFolders

from regard.compression.teacher import Teacher
from regard.predict.load import load
from regard.predict.model_task import task_for
from regard.training.load_data import LabeledData, load_data

GOOD, BAD, OTHER = ("great", "warm", "fine"), ("dull", "cold", "poor"), ("soup", "film", "train", "room", "book", "day")


def write_rows(path: Path, count: int, seed: int) -> Path:
    """Sentences whose label is given by one of their words."""
    chooser = random.Random(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for _ in range(count):
            label = chooser.choice(("good", "bad"))
            words = chooser.choices(OTHER, k=chooser.randint(3, 8))
            words.insert(chooser.randrange(len(words)), chooser.choice(GOOD if label == "good" else BAD))
            writer.writerow([" ".join(words), label])
    return path


@pytest.fixture(autouse=True)
def without_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture of each training, which takes longer than the training."""
    monkeypatch.setattr("regard.training.output.write_run.draw_curves", lambda *_, **__: None)


@pytest.fixture(scope="session")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.csv", 160, seed=0)


@pytest.fixture(scope="session")
def test_file(rows_file: Path) -> Path:
    return write_rows(rows_file.with_name("test.csv"), 80, seed=1)


@pytest.fixture(scope="session")
def teacher_folder(rows_file: Path, trained_folder: TrainedFolders) -> Path:
    return trained_folder(rows_file, preset="tiny-bert", steps=60, lr=5e-3, batch_size=32, device="cpu")


@pytest.fixture(scope="session")
def labeled(rows_file: Path) -> LabeledData:
    return load_data(rows_file)


@pytest.fixture
def teacher(teacher_folder: Path, tmp_path: Path) -> Teacher:
    model = load(teacher_folder, device="cpu")
    return Teacher(model, task_for(model.checkpoint, model.folder), tmp_path / "cache")
