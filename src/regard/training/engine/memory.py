"""What a training will take of a device's memory, counted from its settings before the first step."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.config import Config, RecurrentConfig
from regard.model.block import GATED
from regard.model.network import Network

CPU_TOKENS = 4096  # at once; more is not faster there
SPARE = 0.85  # share of what is free that is planned with: kernels and fragments want some too
STEADY = 64  # tokens at once are a multiple of it


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that stay, and bytes of each token that is in memory at once."""

    weights: int
    gradients: int
    optimizer: int
    per_token: int
    stored: int = 0  # of the weights in a file

    @property
    def fixed(self) -> int:
        return self.weights + self.gradients + self.optimizer

    def total(self, tokens: int) -> int:
        return self.fixed + tokens * self.per_token

    def fits(self, free: int) -> int:
        """The most tokens at once in so many free bytes, of which the weights have theirs already."""
        left = SPARE * (free + self.weights) - self.fixed
        return max(int(left / self.per_token) // STEADY * STEADY, STEADY)


def plan_memory(network: Network, *, dtype: torch.dtype, gradient_checkpointing: bool = False) -> MemoryPlan:
    """Count it: AdamW keeps two numbers a weight; half precision keeps a copy of each matrix."""
    every = list(network.parameters())
    trained = sum(parameter.numel() for parameter in every if parameter.requires_grad)
    half = dtype != torch.float32
    copies = sum(2 * parameter.numel() for parameter in every if parameter.dim() > 1) if half else 0
    stored = sum(parameter.numel() * parameter.element_size() for parameter in every)
    return MemoryPlan(
        weights=stored + copies,
        gradients=4 * trained,
        optimizer=8 * trained,
        per_token=per_token(
            network.config, tuple(network.heads), half=half, gradient_checkpointing=gradient_checkpointing
        ),
        stored=stored,
    )


def per_token(config: Config, heads: tuple[str, ...], *, half: bool, gradient_checkpointing: bool = False) -> int:
    """Bytes that a token leaves behind for the backward pass."""
    size = 2 if half else 4
    guesses = {"masked": 1, "language": 1, "sides": 2}  # of words, by head
    words = config.output_vocabulary * (2 * size + 4) * max((guesses.get(head, 0) for head in heads), default=0)
    if isinstance(config, RecurrentConfig):  # gates and states in full precision; attention, and what is joined
        return 4 * config.width * (8 * config.layers + 8) + words
    inner = config.ffn_width * (3 if config.activation in GATED else 1)
    around = (2 * config.attention.heads + 2 * config.kv_heads) * config.head_width
    layer = size * (around + 4 * config.width + config.ffn_width + inner) + 4 * config.attention.heads
    layer += 2 * config.width if config.dropout else 0  # which were dropped
    depth = config.layers + config.decoder_layers
    blocks = depth * size * config.width + layer if gradient_checkpointing else depth * layer
    return blocks + 3 * size * config.width + words


def check_disk(memory: MemoryPlan, folder: Path) -> None:
    """Say before the first step where the disk has no room for the model and for two states, the old and the new."""
    there = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(there).free
    need = memory.stored + 2 * (2 * memory.stored + memory.optimizer)  # weights, the best of them, the optimizer
    if free < need:
        warnings.warn(
            f"the disk of {folder} has {free / 1e6:,.1f} MB free, but the model and its states take up to "
            f"{need / 1e6:,.1f} MB. Free some, or what is trained may not be written.",
            UserWarning,
            stacklevel=3,
        )


def free_memory(device: torch.device) -> int | None:
    """Free bytes of a device; None where it cannot be known."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def tokens_at_once(memory: MemoryPlan, device: torch.device, *, step: int) -> int:
    """As many tokens of a step as fit, all of them where they do; on the CPU no more than it has use for."""
    free = free_memory(device)
    most = step if free is None else min(step, memory.fits(free))
    return most if device.type == "cuda" else min(most, max(CPU_TOKENS, STEADY))
