"""What is counted before the first step is near what is kept in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.ragged import Ragged
from regard.training.engine import memory
from regard.training.engine.lora import add_lora
from regard.training.engine.memory import CPU_TOKENS, MemoryPlan, per_token, plan_memory, tokens_at_once
from regard.training.initial_model import set_dropout
from regard.training.output.metrics_log import TrainingEvent
from regard.training.result import TrainResult
from regard.training.settings import Lora


@pytest.mark.parametrize("preset", ["tiny-bert", "tiny-modernbert", "tiny-gpt2", "bert-tiny"])
@pytest.mark.parametrize("gradient_checkpointing", [False, True])
def test_states_of_a_token(preset: str, gradient_checkpointing: bool) -> None:
    """Saved tensors of a pass, each memory counted once, against the formula."""
    checkpoint = from_preset(preset, heads={}, vocabulary=100)
    network = checkpoint.network.train()
    network.main.gradient_checkpointing = gradient_checkpointing
    set_dropout(network, 0.0)  # attention on the CPU keeps its weights where some are dropped, and no GPU does
    weights = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    storage_bytes: dict[int, int] = {}
    alive = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storage_bytes[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(Ragged.of([[7] * 32] * 16))
    counted = per_token(checkpoint.config, (), half=False, gradient_checkpointing=gradient_checkpointing)
    real = sum(storage_bytes.values()) / (16 * 32)
    if gradient_checkpointing:
        real += (
            per_token(checkpoint.config, (), half=False) / checkpoint.config.layers
        )  # of the block that is done again
    assert 0.6 < counted / real < 1.7, (counted, real)


def test_what_stays() -> None:
    network = from_preset("tiny-bert", heads={"sequence": 3}).network
    size = sum(parameter.numel() for parameter in network.parameters())
    whole = plan_memory(network, dtype=torch.float32)
    assert (whole.weights, whole.gradients, whole.optimizer) == (4 * size, 4 * size, 8 * size)
    assert plan_memory(network, dtype=torch.float32, passes=2).per_token == 2 * whole.per_token
    assert plan_memory(network, dtype=torch.float32, average=True).optimizer == 1.5 * whole.optimizer
    assert plan_memory(network, dtype=torch.bfloat16).per_token < whole.per_token
    assert plan_memory(network, dtype=torch.bfloat16).gradients == 10 * size
    assert plan_memory(network, dtype=torch.float32, gradient_checkpointing=True).per_token < whole.per_token
    add_lora(network, Lora(rank=2), seed=0)
    assert plan_memory(network, dtype=torch.float32).fixed < 0.6 * whole.fixed


def test_as_many_tokens_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, gpu, cpu = MemoryPlan(1000, 1000, 2000, per_token=10), torch.device("cuda"), torch.device("cpu")
    monkeypatch.setattr(memory, "free_memory", lambda _: 100_000)
    fits = tokens_at_once(plan, gpu, step=10**6)
    assert fits % 64 == 0
    assert plan.total(fits) <= 100_000 + plan.weights < plan.total(fits) / memory.USABLE + 2000
    assert tokens_at_once(plan, gpu, step=500) == 500
    monkeypatch.setattr(memory, "free_memory", lambda _: 10**9)
    assert tokens_at_once(plan, cpu, step=10**6) == CPU_TOKENS
    monkeypatch.setattr(memory, "free_memory", lambda _: None)
    assert tokens_at_once(plan, cpu, step=3000) == 3000


def test_the_memory_plan_is_reported(small: Callable[..., TrainResult], tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    small(tmp_path / "run", steps=1, dev_fraction=0.0, progress=events.append)
    plans = [event.values for event in events if event.kind == "plan"]
    assert len(plans) == 1
    parts = plans[0]["weights"] + plans[0]["gradients"] + plans[0]["optimizer"]
    assert plans[0]["bytes"] == parts + plans[0]["tokens_at_once"] * plans[0]["per_token"]


def test_a_full_disk_is_reported_before_the_first_step(
    small: Callable[..., TrainResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10_000))
    with pytest.warns(UserWarning, match=r"has 0\.0 MB free, but the model and its training states need up to 1\.4 MB"):
        small(tmp_path / "run", steps=1)
