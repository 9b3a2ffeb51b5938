"""Few weights are trained, and the folder is a plain one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.errors import InputError
from regard.model.network import Network
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.training.engine.loop import Stopped
from regard.training.engine.lora import LoraLinear, add_lora, merge_lora
from regard.training.output.metrics_log import TrainingEvent, read_metrics
from regard.training.result import TrainResult
from regard.training.settings import Lora

Train = Callable[..., TrainResult]
SOME = Lora(rank=4, alpha=8)


@torch.no_grad()
def hidden_states(network: Network, sequences: tuple[Ragged, ...]) -> Tensor:
    output: Output = network(*sequences)
    return output.hidden


@pytest.mark.parametrize("preset", ["tiny-bert", "tiny-modernbert", "tiny-t5", "tiny-gpt2", "tiny-albert"])
def test_merged_network_computes_the_same(preset: str) -> None:
    network = from_preset(preset).network.eval()
    texts = Ragged.of([[5, 6, 7, 8], [9, 10]])
    sequences = (texts, texts) if network.encoder is not None and network.decoder is not None else (texts,)
    before = hidden_states(network, sequences)
    add_lora(network, SOME, seed=0)
    torch.testing.assert_close(hidden_states(network, sequences), before, rtol=0, atol=1e-6)
    for part in network.modules():
        if isinstance(part, LoraLinear):
            nn.init.normal_(part.raised, std=0.1)
    changed = hidden_states(network, sequences)
    assert float((changed - before).abs().max()) > 0.01
    names = {name for name, _ in from_preset(preset).network.named_parameters()}
    merge_lora(network)
    torch.testing.assert_close(hidden_states(network, sequences), changed, rtol=0, atol=1e-5)
    assert {name for name, _ in network.named_parameters()} == names
    assert not any(isinstance(part, LoraLinear) for part in network.modules())


def test_so_many_are_trained() -> None:
    network = from_preset("tiny-bert", heads={"sequence": 3}).network
    add_lora(network, SOME, seed=0)
    trained = {name: parameter.numel() for name, parameter in network.named_parameters() if parameter.requires_grad}
    small = {name: size for name, size in trained.items() if not name.startswith("heads.")}
    layers, width, inner = 2, 32, 64
    dense = [(width, 3 * width), (width, width), (width, inner), (inner, width)]
    assert sum(small.values()) == layers * sum(4 * (wide + narrow) for wide, narrow in dense)
    assert sum(trained.values()) - sum(small.values()) == (width * width + width) + (3 * width + 3)
    with pytest.raises(InputError, match=r"lora.rank is 64, but the width of the network is 32"):
        add_lora(network, Lora(rank=64), seed=0)


def test_it_learns_resumes_and_leaves_a_plain_folder(
    small: Train, digest: Callable[[Path], str], tmp_path: Path
) -> None:
    long: dict[str, Any] = {
        "epochs": 12,
        "dev_fraction": 0.0,
        "lora": 4,
        "lora.dropout": 0.1,
        "lr": 1e-2,
        "log_every": 4,
    }
    small(tmp_path / "whole", **long)
    losses = [line["loss"] for line in read_metrics(tmp_path / "whole") if line["kind"] == "log"]
    assert losses[-1] < losses[0] - 0.05
    folder = read_folder(tmp_path / "whole")
    assert folder.labels is not None

    def on_event(event: TrainingEvent) -> None:
        if event.kind == "log" and event.step == 8:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        small(tmp_path / "cut", **long, progress=on_event)
    small(tmp_path / "cut", **long, resume=True)
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
