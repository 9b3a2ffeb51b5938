"""What a training will take on this machine: its speed is measured for a moment, the rest is counted.

A layer of the network is run forward and backward on random tokens for a few tenths of a second. The time of a training
follows from that, from the steps that would be chosen for the data, and from the weights an optimizer step updates.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from regard.checkpoint.folder import Checkpoint
from regard.config import Config, ModelConfig
from regard.data.check.finding import LengthStatistics, TrainingEstimate
from regard.device import pick_device
from regard.errors import RegardError, pluralize
from regard.model.network import build_network
from regard.ragged import Ragged
from regard.tasks import TASKS, task_class
from regard.training.defaults import DataSize, resolve_settings
from regard.training.engine.memory import CPU_TOKENS, plan_memory
from regard.training.settings import Settings

MOMENT = 0.25  # seconds that are measured
WORDS = 500  # of the vocabulary of the layer that is measured
WEIGHTS = 1 << 20  # that an optimizer step is measured with
DEV = 0.1  # share of the rows that is split off for scores
FORWARD = 1 / 3  # of the work of a training step, for scores
COMPILED = 40  # seconds that a GPU waits for its kernels, once


@dataclass(frozen=True)
class MachineSpeed:
    """How fast this machine trains a network."""

    device: str  # in words
    operations: float  # a second, forward and backward
    updates: float  # of weights a second
    gpu: bool


def forecast(
    name: str, checkpoint: Checkpoint, *, pretrained: bool, device: str = "auto"
) -> Callable[[str, int, LengthStatistics], TrainingEstimate | None]:
    """A function from the task, the rows to train on and their lengths to what training would take here.

    `pretrained` says that the network is fine-tuned, not trained from scratch. No weight of it is needed. For rows
    that nothing is trained on, such as minimal pairs, the function returns None.
    """

    def estimate(task: str, rows: int, lengths: LengthStatistics) -> TrainingEstimate | None:
        if task != "text" and task not in TASKS:
            return None
        speed = measure_speed(checkpoint.config, lengths, pick_device(device))
        return estimate_training(name, checkpoint, speed, task, rows, lengths, pretrained=pretrained)

    return estimate


def estimate_training(
    name: str,
    checkpoint: Checkpoint,
    speed: MachineSpeed,
    task: str,
    rows: int,
    lengths: LengthStatistics,
    *,
    pretrained: bool,
) -> TrainingEstimate:
    """Time and memory of a training with the settings that are chosen for such data."""
    network, config = checkpoint.network, checkpoint.config
    parameters = sum(weight.numel() for weight in network.parameters())
    inner = max(parameters - config.vocabulary * config.width, 1)  # looking a word up costs next to nothing
    longest = min(lengths.max_length, lengths.limit or lengths.max_length)
    size = DataSize(max(rows, 1), max(lengths.mean, 1.0), max(longest, 1))
    settings = _chosen(task, size, config, pretrained=pretrained, gpu=speed.gpu)
    epochs, batch = settings.epochs or 1.0, settings.batch_tokens or CPU_TOKENS
    tokens = size.sequences * size.mean
    steps = max(math.ceil(epochs * tokens / batch), 1)
    passes = epochs * (1 + DEV * FORWARD)
    seconds = 6.0 * inner * tokens * passes / speed.operations + steps * parameters / speed.updates
    at_once = batch if speed.gpu else min(batch, max(CPU_TOKENS, longest))
    dtype = torch.bfloat16 if speed.gpu else torch.float32
    return TrainingEstimate(
        model=name,
        parameters=parameters,
        tokens=round(tokens),
        memory=plan_memory(network, dtype=dtype).total(at_once),
        device=speed.device,
        seconds=round(seconds + (COMPILED if speed.gpu else 0), 2),
        epochs=epochs,
        steps=steps,
        assumptions=f"{epochs:g} epochs in {steps:,} steps of {batch:,} tokens, AdamW, all weights trained",
    )


def _chosen(task: str, size: DataSize, config: Config, *, pretrained: bool, gpu: bool) -> Settings:
    """The settings of a training on such data; one pass over plain text."""
    if task == "text":
        return replace(resolve_settings(Settings(), size, config, pretrained=pretrained, gpu=gpu), epochs=1.0)
    recipe = task_class(task).recipe(None if pretrained else config, size.sequences)
    return resolve_settings(Settings(), size, config, pretrained=pretrained, gpu=gpu, recipe=recipe)


def measure_speed(config: Config, lengths: LengthStatistics, device: torch.device) -> MachineSpeed:
    """Run a layer of such a network for a moment."""
    gpu = device.type == "cuda"
    length = int(min(max(lengths.mean, 8), 512, lengths.limit or 512))
    tokens = (16_384 if gpu else 1024) // length * length
    with torch.random.fork_rng([device] if gpu else []):
        torch.manual_seed(0)
        layer, run = _layer(config, length, tokens, device)
        work = 6.0 * sum(weight.numel() for weight in layer.parameters() if weight.shape[:1] != (WORDS,)) * tokens
        operations = work / _seconds(run, device)
        updates = WEIGHTS / _seconds(_update(device), device)
    name = torch.cuda.get_device_name(device) if gpu else pluralize(os.cpu_count() or 1, "CPU core")
    return MachineSpeed(f"this machine ({name})", operations, updates, gpu)


def _layer(config: Config, length: int, tokens: int, device: torch.device) -> tuple[nn.Module, Callable[[], object]]:
    """One layer as in the network; of networks that are not a single stack, matrices of their width."""
    gpu = device.type == "cuda"
    try:
        if not isinstance(config, ModelConfig) or config.kind == "encoder-decoder":
            raise TypeError
        network: nn.Module = build_network(replace(config, layers=1, distinct_layers=None, vocabulary=WORDS)).to(device)
        ids = torch.randint(WORDS, (tokens,), device="cpu")
        batch = Ragged.from_flat(ids, [length] * (tokens // length)).to(device)

        def run() -> None:
            with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
                network(batch).hidden.float().sum().backward()

        run()
    except (RegardError, TypeError, ValueError, RuntimeError, AttributeError):
        return _matrices(config.width, tokens, device)
    return network, run


def _matrices(width: int, tokens: int, device: torch.device) -> tuple[nn.Module, Callable[[], object]]:
    network = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    network.to(device)
    inputs = torch.randn(tokens, width, device=device)

    def run() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            network(inputs).float().sum().backward()

    run()
    return network, run


def _update(device: torch.device) -> Callable[[], object]:
    weight = nn.Parameter(torch.zeros(WEIGHTS, device=device))
    weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.AdamW([weight], fused=True)
    optimizer.step()
    return optimizer.step


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    """The median time of a call, over as many as a moment has room for."""
    times: list[float] = []
    end = time.perf_counter() + MOMENT
    while not times or (time.perf_counter() < end and len(times) < 50):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        began = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]
