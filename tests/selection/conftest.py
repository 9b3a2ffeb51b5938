"""Rows whose label a tiny network learns."""

from __future__ import annotations

import random
from typing import Any

import pytest

GOOD, BAD = ("lovely", "great", "superb", "warm"), ("dull", "awful", "poor", "boring")


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    generator = random.Random(0)
    result = []
    for number in range(60):
        label, words = (("bad", BAD), ("good", GOOD))[number % 2]
        thing = generator.choice(("film", "book"))
        result.append({"text": f"the {thing} {number} was {generator.choice(words)}", "label": label})
    return result
