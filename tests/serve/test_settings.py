from __future__ import annotations

import pytest

from regard.errors import InputError
from regard.serve.settings import QueueFull, ServeLimits


def test_limits_are_checked() -> None:
    assert ServeLimits().max_texts == 1024
    with pytest.raises(InputError, match="max_texts is 0, expected at least 1"):
        ServeLimits(max_texts=0)
    with pytest.raises(InputError, match="could never be accepted"):
        ServeLimits(max_queue_tokens=10)


def test_a_full_queue_has_a_time() -> None:
    assert QueueFull("full", retry_after=2.5).retry_after == 2.5
