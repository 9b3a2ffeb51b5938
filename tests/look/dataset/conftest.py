"""A classifier that was trained once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard


@pytest.fixture(scope="module")
def loaded(trained: Path) -> Any:
    return regard.load(trained)
