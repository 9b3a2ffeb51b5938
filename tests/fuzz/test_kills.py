"""A few kills of each command, and flipped bits in states; `python -m tests.fuzz.kills` does any number."""

from __future__ import annotations

import io

import pytest
from tests.fuzz import kills


@pytest.mark.timeout(600)
def test_nothing_is_lost_and_nothing_damaged_is_used() -> None:
    message = io.StringIO()
    assert kills.run(kills=4, disks=0, flips=1, seed=1, out=message) == 0, message.getvalue()
