"""Methods that take long say how far they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.look.tiny_models import TEXT, model


@pytest.mark.parametrize("method", ["occlusion", "integrated_gradients"])
def test_the_last_report_is_that_all_is_done(method: str) -> None:
    seen: list[Any] = []
    model("tiny-bert", {"sequence": 2}).explain(TEXT, method=method, progress=seen.append)
    assert seen
    assert seen[-1].done == seen[-1].total
