"""Estimate the time and memory of a training on this machine.

One layer of the network is run forward and backward on random tokens for a few tenths of a second. The training time is
computed from this speed, the number of steps chosen for the data, and the number of weights that the optimizer updates.
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
from regard.training.defaults import (
    DataSize,
    probe_recipe,
    resolve_settings,
    similarity_recipe,
    similarity_training,
)
from regard.training.engine.memory import CPU_TOKENS, plan_memory
from regard.training.load_data import default_dev_fraction
from regard.training.settings import Settings

MEASURED_SECONDS = 0.25  # duration of a measurement
VOCABULARY = 500  # vocabulary size of the measured layer
WEIGHTS = 1 << 20  # number of weights of the measured optimizer step
FORWARD_FRACTION = 1 / 3  # work of a forward pass as a fraction of a training step
COMPILE_SECONDS = 40  # time to compile the kernels on a GPU


@dataclass(frozen=True)
class MachineSpeed:
    """How fast this machine trains a network."""

    device: str  # in words
    operations: float  # per second, forward and backward
    updates: float  # weights updated per second
    gpu: bool


def forecast(
    name: str, checkpoint: Checkpoint, *, pretrained: bool, device: str = "auto"
) -> Callable[[str, int, LengthStatistics], TrainingEstimate | None]:
    """A function that estimates a training from the task, the number of training rows and their lengths.

    `pretrained`: the network is fine-tuned, not trained from scratch. Its weights need not be loaded. The function
    returns None for data without a training task, such as minimal pairs.
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
    compute_parameters = max(parameters - config.vocabulary * config.width, 1)  # an embedding lookup costs little
    max_length = min(lengths.max_length, lengths.limit or lengths.max_length)
    size = DataSize(max(rows, 1), max(lengths.mean, 1.0), max(max_length, 1))
    settings = _chosen(task, size, checkpoint, pretrained=pretrained, gpu=speed.gpu)
    epochs, batch = settings.epochs or 1.0, settings.batch_tokens or CPU_TOKENS
    tokens = size.sequences * size.mean
    steps = max(math.ceil(epochs * tokens / batch), 1)
    copies = 2 if settings.rdrop else 1
    passes = epochs * (copies + default_dev_fraction(rows) * FORWARD_FRACTION)
    seconds = 6.0 * compute_parameters * tokens * passes / speed.operations + steps * parameters / speed.updates
    similarity_pairs = 0
    if _learns_similarity(task, checkpoint, pretrained=pretrained):
        before = similarity_training(config, size.sequences, gpu=speed.gpu)
        similarity_pairs = before.pairs
        seconds += 6.0 * compute_parameters * before.pairs * size.mean / speed.operations
        seconds += before.pairs / before.per_step * parameters / speed.updates
    micro_batch = batch if speed.gpu else min(batch, max(CPU_TOKENS, max_length))
    dtype = torch.bfloat16 if speed.gpu else torch.float32
    return TrainingEstimate(
        model=name,
        parameters=parameters,
        tokens=round(tokens),
        memory=plan_memory(network, dtype=dtype, passes=copies).total(micro_batch),
        device=speed.device,
        seconds=round(seconds + (COMPILE_SECONDS if speed.gpu else 0), 2),
        epochs=epochs,
        steps=steps,
        assumptions=f"{epochs:g} epochs in {steps:,} steps of {batch:,} tokens, AdamW, all weights trained",
        similarity_pairs=similarity_pairs,
    )


def _chosen(task: str, size: DataSize, checkpoint: Checkpoint, *, pretrained: bool, gpu: bool) -> Settings:
    """The settings of a training on such data; one pass over plain text."""
    config = checkpoint.config
    if task == "text":
        return replace(resolve_settings(Settings(), size, config, pretrained=pretrained), epochs=1.0)
    recipe = task_class(task).recipe(None if pretrained else config, size.sequences, gpu=gpu)
    if pretrained and task_class(task).probe == "default" and checkpoint.pooling is not None:
        recipe = probe_recipe(config, size.sequences)
    if _learns_similarity(task, checkpoint, pretrained=pretrained):
        recipe = similarity_recipe(config, size.sequences)
    return resolve_settings(Settings(), size, config, pretrained=pretrained, recipe=recipe)


def _learns_similarity(task: str, checkpoint: Checkpoint, *, pretrained: bool) -> bool:
    """Whether a sentence encoder learns similarity before it is trained on text pairs."""
    return task == "pair" and pretrained and checkpoint.pooling in ("mean", "first")


def measure_speed(config: Config, lengths: LengthStatistics, device: torch.device) -> MachineSpeed:
    """Measure the speed of one layer of such a network, and of an optimizer step."""
    gpu = device.type == "cuda"
    length = int(min(max(lengths.mean, 8), 512, lengths.limit or 512))
    tokens = (16_384 if gpu else 1024) // length * length
    with torch.random.fork_rng([device] if gpu else []):
        torch.manual_seed(0)
        layer, run = _layer(config, length, tokens, device)
        work = 6.0 * sum(weight.numel() for weight in layer.parameters() if weight.shape[:1] != (VOCABULARY,)) * tokens
        operations = work / _seconds(run, device)
        updates = WEIGHTS / _seconds(_update(device), device)
    name = torch.cuda.get_device_name(device) if gpu else pluralize(os.cpu_count() or 1, "CPU core")
    return MachineSpeed(f"this machine ({name})", operations, updates, gpu)


def _layer(config: Config, length: int, tokens: int, device: torch.device) -> tuple[nn.Module, Callable[[], object]]:
    """One layer of the network; for recurrent networks and encoder-decoders, two matrices of the same width."""
    gpu = device.type == "cuda"
    try:
        if not isinstance(config, ModelConfig) or config.kind == "encoder-decoder":
            raise TypeError
        network: nn.Module = build_network(replace(config, layers=1, distinct_layers=None, vocabulary=VOCABULARY)).to(
            device
        )
        ids = torch.randint(VOCABULARY, (tokens,), device="cpu")
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
    """The median time of a call, over up to 50 calls."""
    times: list[float] = []
    end = time.perf_counter() + MEASURED_SECONDS
    while not times or (time.perf_counter() < end and len(times) < 50):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        began = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]
