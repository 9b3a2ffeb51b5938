"""Estimate the time and memory of a training on this machine.

One layer of the network is run forward and backward on random tokens for a few tenths of a second. The training time is
computed from this speed, the number of steps chosen for the data, and the number of weights that the optimizer updates.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

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
from regard.training.defaults.recipes import (
    DataSize,
    SimilarityTraining,
    classifier_recipe,
    contrastive_recipe,
    contrastive_training,
    default_head_init,
    default_refit,
    pair_repeats,
    probe_recipe,
    resolve_settings,
    short_text_recipe,
    similarity_recipe,
    similarity_training,
    tag_recipe,
)
from regard.training.engine.memory import CPU_TOKENS, plan_memory
from regard.training.engine.optimizer import belongs_to
from regard.training.load_data import default_dev_fraction
from regard.training.settings import Settings

MEASURED_SECONDS = 0.25  # duration of a measurement
VOCABULARY = 500  # vocabulary size of the measured layer
WEIGHTS = 1 << 20  # number of weights of the measured optimizer step
FORWARD_FRACTION = 1 / 3  # work of a forward pass as a fraction of a training step
GPU_START_SECONDS = 8  # until the first step on a GPU; steps are compiled only where that saves time
TIMES = {2: ", twice", 3: ", three times"}  # how often a network is trained, in words


@dataclass(frozen=True)
class MachineSpeed:
    """How fast this machine trains a network."""

    device: str  # in words
    operations: float  # per second, forward and backward
    updates: float  # weights updated per second
    gpu: bool


def forecast(
    name: str, checkpoint: Checkpoint, *, pretrained: bool, device: str = "auto"
) -> Callable[[str, int, LengthStatistics, int, bool], TrainingEstimate | None]:
    """A function that estimates a training from the task, the number of rows, their lengths, and the classes.

    Its last argument says whether validation rows are split off from these rows.

    `pretrained`: the network is fine-tuned, not trained from scratch. Its weights need not be loaded. The function
    returns None for data without a training task, such as minimal pairs.
    """

    def estimate(
        task: str, rows: int, lengths: LengthStatistics, classes: int, split_off: bool
    ) -> TrainingEstimate | None:
        if task != "text" and task not in TASKS:
            return None
        speed = measure_speed(checkpoint.config, lengths, pick_device(device))
        return estimate_training(
            name, checkpoint, speed, task, rows, lengths, pretrained=pretrained, classes=classes, split_off=split_off
        )

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
    classes: int = 0,
    split_off: bool = False,
) -> TrainingEstimate:
    """Time and memory of a training with the settings that are chosen for such data.

    classes: 0 if unknown. split_off: the validation rows are split off from these rows.
    """
    network, config = checkpoint.network, checkpoint.config
    parameters = sum(weight.numel() for weight in network.parameters())
    size = _data_size(task, rows, lengths, split_off=split_off)
    head_init = _head_init(task, checkpoint, rows, classes, pretrained=pretrained)
    settings = _chosen(task, size, checkpoint, head_init, classes, pretrained=pretrained, gpu=speed.gpu)
    batch = settings.batch_tokens or CPU_TOKENS
    probe = head_init in ("probe", "contrastive")
    single_texts = pretrained and task != "text" and task_class(task).probe == "default"
    times = 2 if single_texts and default_refit(config, rows, probe=probe, gpu=speed.gpu) else 1
    if head_init == "contrastive":
        work = _contrastive_work(size, classes, times, gpu=speed.gpu)
    else:
        before = similarity_training(config, size.sequences, gpu=speed.gpu) if head_init == "similarity" else None
        work = _work(size, settings, batch, before, times)
    micro_batch = batch if speed.gpu else min(batch, max(CPU_TOKENS, size.max_length))
    dtype = torch.bfloat16 if speed.gpu else torch.float32
    return TrainingEstimate(
        model=name,
        parameters=parameters,
        tokens=round(size.sequences * size.mean),
        memory=plan_memory(network, dtype=dtype, passes=2 if settings.rdrop else 1).total(micro_batch),
        device=speed.device,
        seconds=round(_training_seconds(checkpoint, settings, work, size, speed), 2),
        epochs=work.epochs,
        steps=work.steps,
        assumptions=f"{work.words}, AdamW, {'all but the first layer' if settings.freeze else 'all weights'} trained",
        similarity_pairs=work.similarity_pairs,
        contrastive_steps=work.contrastive_steps,
        trainings=work.trainings,
    )


def _data_size(task: str, rows: int, lengths: LengthStatistics, *, split_off: bool) -> DataSize:
    """The size of the training data, without the validation rows if they are split off from it."""
    dev_rows = round(default_dev_fraction(rows) * rows) if split_off and task != "text" else 0
    max_length = max(min(lengths.max_length, lengths.limit or lengths.max_length), 1)
    return DataSize(max(rows - dev_rows, 1), max(lengths.mean, 1.0), max_length)


class _Work(NamedTuple):
    """What a training computes: `texts` forward and backward, and `updates` of all weights."""

    texts: float
    updates: float
    epochs: float
    steps: int
    words: str
    trainings: int
    similarity_pairs: int = 0
    contrastive_steps: int = 0


def _training_seconds(
    checkpoint: Checkpoint, settings: Settings, work: _Work, size: DataSize, speed: MachineSpeed
) -> float:
    """Frozen weights take part in the forward pass only, and embeddings, which are looked up, in the updates only."""
    config = checkpoint.config
    weights = {name: weight.numel() for name, weight in checkpoint.network.named_parameters()}
    frozen = {part: _weights_of(part, weights) for part in settings.freeze or ()}
    computing = max(sum(weights.values()) - config.vocabulary * config.width, 1)
    trained = computing - sum(count for part, count in frozen.items() if part != "embeddings")
    operations = (2.0 * computing + 4.0 * trained) * work.texts * size.mean
    updated = sum(weights.values()) - sum(frozen.values())
    seconds = operations / speed.operations + work.updates * updated / speed.updates
    return seconds + (GPU_START_SECONDS if speed.gpu else 0)


def _weights_of(part: str, weights: Mapping[str, int]) -> int:
    return sum(count for name, count in weights.items() if belongs_to(name, part))


def _work(size: DataSize, settings: Settings, batch: int, before: SimilarityTraining | None, times: int) -> _Work:
    """Epochs, with a score of the validation rows after each; before them, similarity may be learned.

    times: 2 if a second network is trained, on the validation rows too.
    """
    epochs = settings.epochs or 1.0
    times *= settings.repeats or 1
    passes = 2.0 - (settings.rdrop_start or 0.0) if settings.rdrop else 1.0
    steps = max(math.ceil(epochs * size.sequences * size.mean / batch), 1)
    texts = size.sequences * epochs * (times * passes + default_dev_fraction(size.sequences) * FORWARD_FRACTION)
    words = f"{epochs:g} epochs in {steps:,} steps of {batch:,} tokens{TIMES.get(times, '')}"
    updates = times * steps
    if before is None:
        return _Work(texts, updates, epochs, steps, words, times)
    more = before.pairs / before.per_step
    return _Work(texts + before.pairs, updates + more, epochs, steps, words, times, before.pairs)


def _contrastive_work(size: DataSize, classes: int, times: int, *, gpu: bool) -> _Work:
    """Contrastive steps, which may be repeated with the validation rows."""
    training = contrastive_training(size.sequences, classes, gpu=gpu)
    times = 1 if training.once else times
    once = training.repeats * training.steps
    steps = times * once
    words = f"{once} contrastive steps{', twice' if times == 2 else ''}"
    texts = steps * min(training.texts, size.sequences)
    return _Work(texts, steps, 0.0, 0, words, times, contrastive_steps=once)


def _chosen(
    task: str, size: DataSize, checkpoint: Checkpoint, head_init: str, classes: int, *, pretrained: bool, gpu: bool
) -> Settings:
    """The settings of a training on such data; one pass over plain text."""
    config = checkpoint.config
    if task == "text":
        return replace(resolve_settings(Settings(), size, config, pretrained=pretrained), epochs=1.0)
    recipe = task_class(task).recipe(None if pretrained else config, size.sequences, gpu=gpu)
    if head_init == "probe":
        recipe = probe_recipe(config, size.sequences)
    if head_init == "contrastive":
        recipe = contrastive_recipe(config, size.sequences, gpu=gpu) or recipe
    if head_init == "similarity":
        repeats = pair_repeats(config, size.sequences)
        recipe = similarity_recipe(config, size.sequences, repeats=repeats, gpu=gpu)
    if task == "tag" and pretrained and isinstance(config, ModelConfig):
        recipe = tag_recipe(config, size.sequences, joined=False, gpu=gpu and config.dropout > 0)
    if task == "classify" and pretrained and head_init == "random":
        recipe = classifier_recipe(config, size.sequences, mean_length=size.mean, gpu=gpu) or recipe
    if task == "classify" and pretrained and head_init == "random" and classes == 2:
        recipe = short_text_recipe(config, size.sequences, mean_length=size.mean) or recipe
    return resolve_settings(Settings(), size, config, pretrained=pretrained, recipe=recipe)


def _head_init(task: str, checkpoint: Checkpoint, rows: int, classes: int, *, pretrained: bool) -> str:
    """What a new head starts from: as `regard train` chooses it for a sentence encoder."""
    if not pretrained or checkpoint.pooling is None or task == "text":
        return "random"
    if task == "pair":
        return "similarity" if checkpoint.pooling in ("mean", "first") else "random"
    if task_class(task).probe != "default":
        return "random"
    return default_head_init(classes, rows) if classes else "probe"


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
    name = torch.cuda.get_device_name(device) if gpu else pluralize(torch.get_num_threads(), "CPU core")
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
