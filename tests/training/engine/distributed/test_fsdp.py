"""Weights split over ranks: the same steps, and a state that any number of ranks goes on from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.training.helpers import stop_at

from regard.errors import FolderError, InputError
from regard.training.result import TrainResult

Train = Callable[..., TrainResult]
TEN: dict[str, Any] = {"steps": 10, "dropout": 0.0, "dev_fraction": 0.2, "eval_every": 4, "log_every": 1, "fsdp": True}


def apart(one: Path, other: Path) -> float:
    mine, theirs = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert mine.keys() == theirs.keys()
    return max(float((mine[name] - theirs[name]).abs().max()) for name in mine)


def test_two_ranks_hold_half_each_and_one_goes_on(small: Train, torchrun: Callable[..., None], tmp_path: Path) -> None:
    small(tmp_path / "one", **{**TEN, "fsdp": False})
    torchrun(tmp_path / "two", **TEN, micro_batch_tokens=128)
    assert apart(tmp_path / "one", tmp_path / "two") < 1e-6
    torchrun(tmp_path / "cut", **TEN, stop=5)
    state = tmp_path / "cut/state"
    assert json.loads((state / "state.json").read_text())["position"]["step"] == 5
    assert len(list((state / "shards").glob("*.safetensors"))) == 2
    small(tmp_path / "cut", **TEN, resume=True)
    assert apart(tmp_path / "one", tmp_path / "cut") < 1e-6


def test_one_rank_saves_the_same_way_and_resumes_to_the_bit(
    small: Train, digest: Callable[[Path], str], tmp_path: Path
) -> None:
    from regard.training.engine.loop import Stopped

    small(tmp_path / "whole", **TEN)
    with pytest.raises(Stopped):
        small(tmp_path / "cut", **TEN, progress=stop_at(6))
    shutil.copytree(tmp_path / "cut", tmp_path / "flipped")
    small(tmp_path / "cut", **TEN, resume=True)
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
    (part,) = (tmp_path / "flipped/state/shards").glob("*.safetensors")
    content = part.read_bytes()
    part.write_bytes(content[:-9] + bytes([content[-9] ^ 4]) + content[-8:])
    with pytest.raises(FolderError, match=rf"shards/{part.name} is damaged"):
        small(tmp_path / "flipped", **TEN, resume=True)
    part.write_bytes(content)
    part.with_name("other.safetensors").write_bytes(content)
    with pytest.raises(FolderError, match=r"shards/other\.safetensors is not part of this state"):
        small(tmp_path / "flipped", **TEN, resume=True)
    part.with_name("other.safetensors").unlink()
    part.unlink()
    with pytest.raises(FolderError, match=rf"shards/{part.name} is missing"):
        small(tmp_path / "flipped", **TEN, resume=True)


def test_not_with_small_matrices(small: Train, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lora\.rank and fsdp were both given"):
        small(tmp_path / "run", **TEN, lora=4)
