"""What several verbs say in the same words."""

from __future__ import annotations

import pytest

from regard.cli.output import format_rate


@pytest.mark.parametrize(
    ("count", "seconds", "message"),
    [(11, 57.2, "0.19 per second"), (50, 10.0, "5 per second"), (90_000, 60.0, "1,500 per second")],
)
def test_a_slow_speed_is_not_none(count: int, seconds: float, message: str) -> None:
    assert format_rate(count, seconds) == message
