"""How the steps of a training are laid out, and in what form they run on a device."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from regard.config import RecurrentConfig
from regard.data.batching.batches import BatchSettings
from regard.data.batching.packing import Ints
from regard.errors import InputError, setting
from regard.model.kernels.dispatch import runs_flat
from regard.model.network import Network
from regard.tasks.task import Task
from regard.training.engine.distributed import World
from regard.training.engine.lora import add_lora
from regard.training.engine.memory import check_disk, plan_memory, tokens_at_once
from regard.training.engine.optimizer import freeze
from regard.training.engine.stepper import BatchShape
from regard.training.job import BatchSource, TrainingJob, total_steps
from regard.training.metrics_log import OnTrainingEvent
from regard.training.settings import Settings

STEADY = 64  # tokens and sequences of fixed shapes are multiples of this


def prepare_network(network: Network, settings: Settings) -> None:
    """What is trained of the network, and how it keeps its states."""
    if settings.lora.rank and settings.fsdp:
        both = f"{setting('lora.rank')} and {setting('fsdp')}"
        raise InputError(f"{both} were both given; small matrices need no splitting: leave {setting('fsdp')} out.")
    if settings.lora.rank and isinstance(network.config, RecurrentConfig):
        name = setting("lora.rank")
        raise InputError(f"{name} has no place in a recurrent network: it has no blocks. Leave it out.")
    if settings.lora.rank:
        add_lora(network, settings.lora, seed=settings.seed)
    freeze(network, settings.freeze)
    for stack in (network.encoder, network.decoder):
        if stack is not None:
            stack.gradient_checkpointing = settings.gradient_checkpointing


def plan_job(
    network: Network,
    task: Task,
    source: BatchSource,
    settings: Settings,
    folder: Path,
    *,
    longest: int | None = None,
    world: World | None = None,
    resume: bool = False,
    progress: OnTrainingEvent | None = None,
) -> TrainingJob:
    """How the steps are laid out, and in what form they run on this device.

    longest: the most tokens of a sequence in any epoch; as in the first where not told.
    """
    device = next(network.parameters()).device
    lengths = source.epoch(0).lengths
    longest = longest or int(lengths.max())
    assert settings.batch_tokens is not None
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported() and settings.dtype in ("auto", "bf16")
    fixed = task.fixed_shapes and should_compile(network, settings, device)
    tokens = -(-settings.batch_tokens // STEADY) * STEADY if fixed else settings.batch_tokens
    shape, most = None, settings.batch_size
    if fixed:
        shape, most = fixed_batch_shape(tokens, most, lengths, longest, network.config.max_tokens)
        tokens = shape.tokens
    batches = BatchSettings(tokens, sequences=most, seed=settings.seed)
    world = world or World()
    if world.ranks > 1 and world.is_main_process and not task.can_split:
        warnings.warn(
            f"each of {world.ranks} ranks holds the texts of its own share of a step against each other, not those of "
            "the whole step; a larger batch makes up for it.",
            UserWarning,
            stacklevel=2,
        )
    dtype = torch.bfloat16 if bf16 else torch.float32
    memory = plan_memory(network, dtype=dtype, gradient_checkpointing=settings.gradient_checkpointing)
    if world.is_main_process:
        check_disk(memory, folder)
    at_once = settings.micro_batch_tokens or (tokens_at_once(memory, device, step=tokens) if task.can_split else tokens)
    at_once = min(tokens, -(-tokens // world.ranks) + longest, max(at_once, longest))
    if shape is not None:
        at_once = min(tokens, -(-at_once // shape.longest) * shape.longest)
    return TrainingJob(
        network=network,
        task=task,
        source=source,
        settings=settings,
        steps=total_steps(source, batches, settings),
        folder=folder,
        batches=batches,
        micro_batch_tokens=at_once,
        memory=memory,
        dtype=dtype,
        shape=None if shape is None else shape.cut(at_once),
        compile=fixed,
        record=fixed and world.ranks == 1,
        world=world,
        resume=resume,
        progress=progress,
    )


def should_compile(network: Network, settings: Settings, device: torch.device) -> bool:
    """Whether steps are compiled: on a GPU whose kernel takes flat tokens, unless told otherwise."""
    config = network.config
    if settings.compile == "no" or settings.fsdp or device.type != "cuda" or isinstance(config, RecurrentConfig):
        return False
    plain = config.kind != "encoder-decoder" and config.positions.kind not in ("relative", "alibi")
    flat = runs_flat(torch.bfloat16, config.head_width, device.index or 0) and settings.dtype != "fp32"
    return plain and flat


def fixed_batch_shape(
    tokens: int, most: int | None, lengths: Ints, longest: int, places: int | None = None
) -> tuple[BatchShape, int]:
    """One shape for every batch and what fills it up, and how many sequences a batch may have.

    Sequences that are all equally long make a rectangle, and so does what fills it up.
    """
    if int(lengths.min()) == longest and longest <= tokens:
        rows = min(tokens // longest, most or tokens)
        return BatchShape(rows * longest, rows, longest), rows
    most = most or max(4, int(1.5 * tokens / max(float(lengths.mean()), 1.0)))
    longest = max(longest, min(-(-longest // STEADY) * STEADY, places or tokens))
    filling = -(-tokens // longest)
    return BatchShape(tokens, -(-(most + filling) // 8) * 8, longest), most
