"""What several verbs say in the same words."""

from __future__ import annotations

import pytest

from regard.cli.output import format_rate


@pytest.mark.parametrize(
    ("count", "seconds", "says"),
    [(11, 57.2, "0.19 per second"), (50, 10.0, "5 per second"), (90_000, 60.0, "1,500 per second")],
)
def test_a_slow_speed_is_not_none(count: int, seconds: float, says: str) -> None:
    assert format_rate(count, seconds) == says
