"""A model and a file of texts to search."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.predict.search.texts import TEXTS

import regard
from regard.predict import Model


@pytest.fixture(scope="module")
def model(trained: Path) -> Model:
    return regard.load(trained, device="cpu")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS) + "\n")  # blank lines between
    return path
