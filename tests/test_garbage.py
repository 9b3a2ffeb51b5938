"""Pauses of the garbage collection."""

from __future__ import annotations

import contextlib
import gc

import pytest

from regard.garbage import without_garbage_collection


@pytest.mark.parametrize("enabled", [True, False])
def test_the_state_before_comes_back(*, enabled: bool) -> None:
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with contextlib.suppress(ValueError), without_garbage_collection():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
