"""A trained model, and chunks of a few rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.predict import Model
from regard.tasks.classify import Classify


@pytest.fixture(scope="module")
def model(trained: Path) -> Model:
    return regard.load(trained, device="cpu")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classify, "chunk_size", 8)
