"""The mean of the last weights: computed by hand, kept over a stop, and scored instead of the latest weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.training.helpers import Digest, metrics, stop_at
from torch import nn

import regard
from regard import samples
from regard.errors import FolderError, InputError
from regard.training.engine.averaging import WeightAverage
from regard.training.engine.loop import Stopped

STEPS = 8
PRETRAIN: dict[str, Any] = {
    "objective": "causal",
    "preset": "tiny-gpt2",
    "steps": STEPS,
    "lr": 3e-3,
    "batch_tokens": 256,
    "window": 32,
    "eval_every": 2,
    "log_every": 1,
    "device": "cpu",
}


def pretrain(out: Path, **settings: Any) -> None:
    regard.pretrain([samples.path("corpus")], out=out, **{**PRETRAIN, **settings})


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


def test_mean_is_scored_in_the_last_part(tmp_path: Path) -> None:
    """Scores before the averaged part are those of a training without averaging; later ones are not."""
    pretrain(tmp_path / "mean", average=0.5)
    pretrain(tmp_path / "plain")
    lines = [metrics(tmp_path / name) for name in ("mean", "plain")]
    scores = [{line["step"]: line["dev_loss"] for line in one if line["kind"] == "score"} for one in lines]
    same = [step for step in scores[0] if scores[0][step] == scores[1][step]]
    assert list(scores[0]) == [2, 4, 6, 8]
    assert same == [2, 4]
    losses = [[line for line in one if line["kind"] == "log"] for one in lines]
    assert losses[0] == losses[1]  # the steps themselves are the same


def test_model_without_validation_text_has_the_mean(tmp_path: Path) -> None:
    """Of the last one of two steps, the mean is that step; of both, it lies in between."""
    for average in (0.0, 0.5, 1.0):
        pretrain(tmp_path / str(average), steps=2, dev_fraction=0.0, average=average, schedule="constant")
    plain, last, both = (load_file(tmp_path / str(one) / "model.safetensors") for one in (0.0, 0.5, 1.0))
    assert all(torch.equal(plain[name], last[name]) for name in plain)
    assert any(not torch.equal(plain[name], both[name]) for name in plain)


@pytest.mark.parametrize("step", [3, 7])
def test_a_stopped_training_goes_on(digest: Digest, tmp_path: Path, step: int) -> None:
    pretrain(tmp_path / "whole", average=0.5)
    with pytest.raises(Stopped):
        pretrain(tmp_path / "run", average=0.5, progress=stop_at(step))
    with pytest.raises(InputError, match=r"average: 0\.5 then, 0\.2 now"):
        pretrain(tmp_path / "run", average=0.2, resume=True)
    pretrain(tmp_path / "run", average=0.5, resume=True)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    assert metrics(tmp_path / "run") == metrics(tmp_path / "whole")
    with pytest.raises(FolderError, match=r"average: 0\.5 then, 0\.0 now"):
        pretrain(tmp_path / "run", resume=True)


def test_ranks_with_sharded_weights_have_the_same_mean(torchrun: Any, tmp_path: Path) -> None:
    """Two ranks train and are stopped; one goes on to the weights of an undisturbed training."""
    settings = {**PRETRAIN, "dev_fraction": 0.0, "average": 0.75}
    pretrain(tmp_path / "whole", **settings)
    text = [str(samples.path("corpus"))]
    torchrun(tmp_path / "run", call="pretrain", **settings, files=text, fsdp=True, stop=5)
    pretrain(tmp_path / "run", **settings, fsdp=True, resume=True)
    whole, run = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "run"))
    for name, weight in whole.items():
        torch.testing.assert_close(run[name], weight, rtol=0, atol=1e-6)


def test_fraction_is_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"average is 1\.5, expected a fraction from 0 to 1"):
        pretrain(tmp_path / "run", average=1.5)
