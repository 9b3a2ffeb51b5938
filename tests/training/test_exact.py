"""The same step whatever it is cut into: one batch, parts of it, two ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.training.result import TrainResult

Train = Callable[..., TrainResult]
TEN: dict[str, Any] = {"steps": 10, "dropout": 0.0, "dev_fraction": 0.0, "log_every": 1}


def apart(one: Path, other: Path) -> float:
    mine, theirs = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert mine.keys() == theirs.keys()
    return max(float((mine[name] - theirs[name]).abs().max()) for name in mine)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole") / "run"


@pytest.fixture
def one(whole: Path, small: Train) -> Path:
    """Ten steps in one batch each."""
    if not whole.exists():
        small(whole, **TEN)
    return whole


def test_a_step_in_parts_is_the_step(one: Path, small: Train, tmp_path: Path) -> None:
    small(tmp_path / "parts", micro_batch_tokens=128, **TEN)
    assert apart(one, tmp_path / "parts") < 1e-6


def test_two_ranks_in_parts_do_the_step_of_one(one: Path, torchrun: Callable[..., None], tmp_path: Path) -> None:
    torchrun(tmp_path / "ranks", micro_batch_tokens=128, **TEN)
    assert apart(one, tmp_path / "ranks") < 1e-6


def test_what_no_output_feels_does_not_move(one: Path, small: Train, tmp_path: Path) -> None:
    """Biases of keys have no gradient but rounding: AdamW makes whole steps of it, and no two layouts round alike."""
    small(tmp_path / "begun", **{**TEN, "steps": 1, "lr": 1e-12})
    first, ended = (load_file(path / "model.safetensors") for path in (tmp_path / "begun", one))
    for name in first:
        if name.endswith("key.bias"):
            torch.testing.assert_close(ended[name], first[name], rtol=0, atol=0)
        if name.endswith("query.bias"):
            assert float((ended[name] - first[name]).abs().max()) > 1e-4
