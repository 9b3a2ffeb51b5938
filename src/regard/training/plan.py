"""The plan of a training: batch sizes, number of steps, precision and compilation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import torch

from regard.config import ModelConfig
from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.errors import InputError, setting
from regard.model.kernels.dispatch import runs_flat
from regard.model.network import Network
from regard.tasks.task import Task
from regard.text.flat_tokens import Ints
from regard.training.engine.compilation import CompileCost, CompileMode, surely_pays
from regard.training.engine.distributed.world import World
from regard.training.engine.lora import add_lora
from regard.training.engine.memory import MemoryPlan, check_disk, plan_memory, tokens_at_once
from regard.training.engine.optimizer import freeze
from regard.training.engine.stepper import BatchShape
from regard.training.job import BatchSource, TrainingJob, total_steps
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.settings import Settings

CAPACITIES = (1.05, 1.1, 1.2, 1.4, 2.0)  # of a batch, as multiples of the mean number of tokens
MULTIPLE = 64  # tokens and sequences of fixed shapes are multiples of this


def prepare_network(network: Network, settings: Settings) -> None:
    """Add LoRA, freeze parts and set gradient checkpointing, as the settings say."""
    if settings.lora.rank and settings.fsdp:
        both = f"{setting('lora.rank')} and {setting('fsdp')}"
        raise InputError(
            f"{both} were both given; LoRA weights are small and need no sharding: leave {setting('fsdp')} out."
        )
    if settings.lora.rank and not isinstance(network.config, ModelConfig):
        name = setting("lora.rank")
        raise InputError(
            f"{name} is not possible for a recurrent network or a baseline, without Transformer blocks. Leave it out."
        )
    if settings.lora.rank:
        add_lora(network, settings.lora, seed=settings.seed)
    freeze(network, settings.freeze or ())
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
    max_tokens: int | None = None,
    average: float = 0.0,
    world: World | None = None,
    resume: bool = False,
    progress: OnTrainingEvent | None = None,
) -> TrainingJob:
    """Lay out the steps of a training, and choose how they run on this device.

    max_tokens: the maximum length of a sequence in any epoch; as in the first epoch if not given.
    average: fraction of the steps at the end whose weights are averaged.
    """
    device = next(network.parameters()).device
    world = world or World()
    _warn_of_ranks(task, world)
    lengths = source.epoch(0).lengths
    max_tokens = max_tokens or int(lengths.max())
    dtype = training_dtype(settings, device)
    fixed = task.fixed_shapes and fixes_shapes(network, settings, device)
    batches, shape = _batches(network, settings, lengths, max_tokens, fixed=fixed)
    memory = _memory(network, settings, dtype, average)
    if world.is_main_process:
        check_disk(memory, folder)
    fitting = tokens_at_once(memory, device, step=batches.tokens) if task.can_split else batches.tokens
    micro = _micro_batch(settings.micro_batch_tokens or fitting, batches.tokens, max_tokens, world, shape)
    job = TrainingJob(
        network=network,
        task=task,
        source=source,
        settings=settings,
        steps=total_steps(source, batches, settings),
        folder=folder,
        batches=batches,
        micro_batch_tokens=micro,
        memory=memory,
        dtype=dtype,
        shape=None if shape is None else shape.cut(micro),
        record=fixed and world.ranks == 1,
        average=average,
        world=world,
        resume=resume,
        progress=progress,
    )
    return with_compilation(job) if fixed else job


def _memory(network: Network, settings: Settings, dtype: torch.dtype, average: float) -> MemoryPlan:
    return plan_memory(
        network,
        dtype=dtype,
        gradient_checkpointing=settings.gradient_checkpointing,
        average=average > 0,
        passes=2 if settings.rdrop else 1,
    )


def _warn_of_ranks(task: Task, world: World) -> None:
    """Warn that a loss over all pairs of a batch compares only the texts of one rank."""
    if world.ranks > 1 and world.is_main_process and not task.can_split:
        warnings.warn(
            f"each of {world.ranks} ranks compares the texts of its own part of a batch with each other, not those of "
            "the whole batch; a larger batch makes up for it.",
            UserWarning,
            stacklevel=3,
        )


def _micro_batch(micro: int, tokens: int, max_tokens: int, world: World, shape: BatchShape | None) -> int:
    """Tokens in memory at once: no more than a rank's part of a step, no less than the longest sequence."""
    micro = min(tokens, -(-tokens // world.ranks) + max_tokens, max(micro, max_tokens))
    return micro if shape is None else min(tokens, -(-micro // shape.max_length) * shape.max_length)


def training_dtype(settings: Settings, device: torch.device) -> torch.dtype:
    """bfloat16 where the GPU supports it, unless float32 was asked for."""
    supported = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if supported and settings.dtype in ("auto", "bf16") else torch.float32


def _batches(
    network: Network, settings: Settings, lengths: Ints, max_tokens: int, *, fixed: bool
) -> tuple[BatchSettings, BatchShape | None]:
    """The size of a batch, and the fixed shape of batches for a compiled step."""
    assert settings.batch_tokens is not None
    if not fixed:
        return BatchSettings(settings.batch_tokens, sequences=settings.batch_size, seed=settings.seed), None
    tokens = settings.batch_tokens
    if settings.batch_size is not None:
        tokens = min(tokens, tight_batch_tokens(settings.batch_size, lengths, seed=settings.seed))
    tokens = -(-max(tokens, max_tokens) // MULTIPLE) * MULTIPLE
    shape, sequences = fixed_batch_shape(tokens, settings.batch_size, lengths, max_tokens, network.config.max_tokens)
    return BatchSettings(shape.tokens, sequences=sequences, seed=settings.seed), shape


def tight_batch_tokens(batch_size: int, lengths: Ints, *, seed: int) -> int:
    """The smallest capacity in tokens with which nearly all batches have `batch_size` texts.

    A fixed shape is computed whole, whether it is filled or not. Packing combines long and short texts, so that batches
    need little more than the mean.
    """
    fewest = -(-len(lengths) // batch_size)
    mean = float(lengths.mean()) * min(batch_size, len(lengths))
    max_length = int(lengths.max())
    for factor in CAPACITIES:
        tokens = max(int(mean * factor), max_length)
        if BatchPlan(lengths, BatchSettings(tokens, sequences=batch_size, seed=seed)).steps <= 1.01 * fewest:
            return tokens
    return max(int(mean * CAPACITIES[-1]), max_length)


def with_compilation(job: TrainingJob) -> TrainingJob:
    """The job with when to compile: the first step if asked to, with several GPUs, or if it is certainly long."""
    network, settings = job.network, job.settings
    step = (network.config, sorted(network.heads), job.shape, job.dtype, bool(settings.rdrop))
    cost = CompileCost(step, depth(network))
    weights = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    operations = 6.0 * weights * job.steps * job.batches.tokens
    mode: CompileMode = "measure"
    if settings.compile == "no":
        mode = "no"
    elif settings.compile == "yes" or job.world.ranks > 1 or surely_pays(operations, cost.expected()):
        mode = "yes"
    return replace(job, compile=mode, compile_cost=cost)


def depth(network: Network) -> int:
    """The number of layers of the encoder and the decoder."""
    return sum(stack.depth for stack in (network.encoder, network.decoder) if stack is not None)


def fixes_shapes(network: Network, settings: Settings, device: torch.device) -> bool:
    """Whether steps have fixed shapes, to be recorded or compiled: on a GPU with a variable-length attention kernel."""
    config = network.config
    if settings.fsdp or device.type != "cuda" or not isinstance(config, ModelConfig):
        return False
    plain = config.kind != "encoder-decoder" and config.positions.kind not in ("relative", "alibi")
    flat = runs_flat(torch.bfloat16, config.head_width, device.index or 0) and settings.dtype != "fp32"
    return plain and flat


def fixed_batch_shape(
    tokens: int, max_sequences: int | None, lengths: Ints, max_length: int, max_positions: int | None = None
) -> tuple[BatchShape, int]:
    """One shape for every batch with its padding, and the maximum number of sequences of a batch.

    Sequences of equal length make a rectangle, and so does the padding.
    """
    if int(lengths.min()) == max_length and max_length <= tokens:
        rows = min(tokens // max_length, max_sequences or tokens)
        return BatchShape(rows * max_length, rows, max_length), rows
    max_sequences = max_sequences or max(4, int(1.5 * tokens / max(float(lengths.mean()), 1.0)))
    max_length = max(max_length, min(-(-max_length // MULTIPLE) * MULTIPLE, max_positions or tokens))
    padding = -(-tokens // max_length)
    return BatchShape(tokens, -(-(max_sequences + padding) // 8) * 8, max_length), max_sequences
