"""The mean of the weights of trainings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regard
from regard.errors import FolderError
from regard.training.head_init.mean_weights import mean_weights


def test_the_mean_of_two_networks(tmp_path: Path) -> None:
    networks = []
    for seed in range(2):
        model = regard.create("tiny-bert", seed=seed)
        model.save(tmp_path / f"{seed}")
        networks.append(model.network.state_dict())
    mean = mean_weights([tmp_path / "0", tmp_path / "1"])
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (networks[0][name] + networks[1][name]) / 2)


def test_other_networks_have_no_mean(tmp_path: Path) -> None:
    regard.create("tiny-bert").save(tmp_path / "0")
    regard.create("tiny-gpt2").save(tmp_path / "1")
    with pytest.raises(FolderError, match="their weights have no mean"):
        mean_weights([tmp_path / "0", tmp_path / "1"])
