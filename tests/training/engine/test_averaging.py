"""The mean of the last weights: computed by hand, kept over a stop, and scored instead of the latest weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.training.helpers import Digest, Train, metrics, stop_at
from torch import Tensor, nn

from regard.errors import FolderError, InputError
from regard.training.engine.averaging import WeightAverage
from regard.training.engine.loop import Stopped
from regard.training.settings import Settings

LAST: dict[str, Any] = {"epochs": 6, "dev_fraction": 0.2, "log_every": 1, "average": 0.5}


def test_mean_of_the_last_weights() -> None:
    network = nn.Linear(3, 2)
    average = WeightAverage(network, fraction=0.3, steps=10)
    steps = [torch.randn(2, 3) for _ in range(10)]
    for number, weight in enumerate(steps, 1):
        with torch.no_grad():
            network.weight.copy_(weight)
        average.update(number)
        assert average.started == (number > 7)
    expected = torch.stack(steps[7:]).double().mean(0).float()
    torch.testing.assert_close(average.means["weight"], expected)
    with average.swapped():
        torch.testing.assert_close(network.weight.detach(), expected)
    assert torch.equal(network.weight.detach(), steps[-1])


@pytest.mark.parametrize(("fraction", "first"), [(0.0, 10), (0.01, 9), (0.25, 8), (1.0, 0)])
def test_first_averaged_step(fraction: float, first: int) -> None:
    assert WeightAverage(nn.Linear(1, 1), fraction=fraction, steps=10).first == first


def test_frozen_weights_are_not_copied() -> None:
    network = nn.Linear(2, 2)
    network.bias.requires_grad_(False)
    average = WeightAverage(network, fraction=1.0, steps=2)
    average.update(1)
    assert list(average.means) == ["weight"]
    with pytest.raises(FolderError, match="belong to another network"):
        average.restore({"weight": network.weight, "bias": network.bias})


def test_model_without_validation_rows_has_the_mean(
    small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights: list[Tensor] = []
    update = WeightAverage.update

    def spy(self: WeightAverage, step: int) -> None:
        weights.append(next(iter(self.parameters.values())).detach().clone())
        update(self, step)

    monkeypatch.setattr(WeightAverage, "update", spy)
    settings: dict[str, Any] = {"steps": 8, "dev_fraction": 0.0}
    small(tmp_path / "mean", **settings, average=0.5)
    small(tmp_path / "plain", **settings)
    mean, plain = (load_file(tmp_path / name / "model.safetensors") for name in ("mean", "plain"))
    name = next(name for name in mean if mean[name].shape == weights[0].shape)
    expected = np.mean([one.double().numpy() for one in weights[4:8]], 0)
    np.testing.assert_allclose(mean[name].numpy(), expected, atol=1e-6)
    assert not torch.equal(mean[name], plain[name])
    torch.testing.assert_close(plain[name], weights[-1], rtol=0, atol=0)


def test_mean_is_scored_in_the_last_part(small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores before the averaged part are those of a training without averaging; later ones are not."""
    small(tmp_path / "mean", **LAST)
    small(tmp_path / "plain", **{**LAST, "average": 0.0})
    both = [[line for line in metrics(tmp_path / name) if line["kind"] == "score"] for name in ("mean", "plain")]
    half = metrics(tmp_path / "plain")[-1]["step"] / 2
    early = [(mean, plain) for mean, plain in zip(*both, strict=True) if plain["step"] <= half]
    late = [(mean, plain) for mean, plain in zip(*both, strict=True) if plain["step"] > half + 1]
    assert early
    assert late
    assert all(mean["dev_loss"] == plain["dev_loss"] for mean, plain in early)
    assert all(mean["dev_loss"] != plain["dev_loss"] for mean, plain in late)
    losses = [[line for line in metrics(tmp_path / name) if line["kind"] == "log"] for name in ("mean", "plain")]
    assert losses[0] == losses[1]  # the steps themselves are the same


@pytest.mark.parametrize("step", [4, 15])
def test_a_stopped_training_goes_on(small: Train, digest: Digest, tmp_path: Path, step: int) -> None:
    small(tmp_path / "whole", **LAST)
    with pytest.raises(Stopped):
        small(tmp_path / "run", **LAST, progress=stop_at(step))
    assert (tmp_path / "run/state/average.safetensors").exists() == (step == 15)
    small(tmp_path / "run", **LAST, resume=True)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    assert metrics(tmp_path / "run") == metrics(tmp_path / "whole")


@pytest.mark.parametrize("fsdp", [False, True])
def test_ranks_have_the_same_mean(torchrun: Any, digest: Digest, tmp_path: Path, fsdp: bool) -> None:
    settings = {"steps": 6, "dev_fraction": 0.0, "average": 0.5, "log_every": 1, "fsdp": fsdp}
    torchrun(tmp_path / "whole", **settings)
    torchrun(tmp_path / "run", **settings, stop=5)
    torchrun(tmp_path / "run", **settings, resume=True)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_fraction_is_checked() -> None:
    with pytest.raises(InputError, match=r"average is 1\.5, expected a fraction from 0 to 1"):
        Settings(average=1.5)
