"""The network as it is run: compiled or not, with the hooks of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.model import hooks as taps
from regard.predict import Model


def test_taps_are_seen_and_obeyed_by_a_compiled_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled would not see them, so it must not run while one is set."""

    def compiled(*_: Any, **__: Any) -> Callable[..., Any]:
        def refuse(*_: Any) -> None:
            raise AssertionError("the compiled network ran")

        return refuse

    monkeypatch.setattr(torch, "compile", compiled)
    model = Model(random_checkpoint("tiny-bert"), compile=True)
    with taps.record(model.network, "encoder.layers.0") as recorded:
        model.outputs([[1, 2, 3]])
    assert tuple(recorded["encoder.layers.0"].shape) == (3, 32)
    with pytest.raises(AssertionError, match="the compiled network ran"):
        model.outputs([[1, 2, 3]])
