"""Memory that a training needs, computed from the settings before the first step."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.config import BagConfig, Config, NgramConfig, RecurrentConfig
from regard.model.block import GATED
from regard.model.kernels.half_weights import HalfWeights
from regard.model.network import Network

CPU_TOKENS = 4096  # tokens at once on the CPU; more is not faster
USABLE = 0.85  # fraction of the free memory to plan with: kernels and fragmentation need the rest
MULTIPLE = 64  # tokens at once are a multiple of it


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes needed for the whole training, and bytes per token that is in memory at once."""

    weights: int
    gradients: int
    optimizer: int
    per_token: int
    stored: int = 0  # bytes of the weights in a file

    @property
    def fixed(self) -> int:
        return self.weights + self.gradients + self.optimizer

    def total(self, tokens: int) -> int:
        return self.fixed + tokens * self.per_token

    def fits(self, free: int) -> int:
        """Maximum number of tokens at once, given the free bytes; the weights are allocated already."""
        available = USABLE * (free + self.weights) - self.fixed
        return max(int(available / self.per_token) // MULTIPLE * MULTIPLE, MULTIPLE)


def plan_memory(
    network: Network,
    *,
    dtype: torch.dtype,
    gradient_checkpointing: bool = False,
    average: bool = False,
    passes: int = 1,
) -> MemoryPlan:
    """AdamW keeps two numbers per trained weight, averaging a third; half precision keeps a copy of each matrix.

    Weights that are converted at once (`HalfWeights`) have their gradients in 16 bits and in fp32, besides their sum.

    passes: how often each token is in a batch (twice with R-Drop).
    """
    parameters = list(network.parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    half = dtype != torch.float32
    copies = sum(2 * parameter.numel() for parameter in parameters if parameter.dim() > 1) if half else 0
    stored = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    return MemoryPlan(
        weights=stored + copies,
        gradients=(10 if HalfWeights.pays(network, dtype) else 4) * trained,
        optimizer=(12 if average else 8) * trained,
        per_token=passes
        * per_token(network.config, tuple(network.heads), half=half, gradient_checkpointing=gradient_checkpointing),
        stored=stored,
    )


def per_token(config: Config, heads: tuple[str, ...], *, half: bool, gradient_checkpointing: bool = False) -> int:
    """Bytes of activations that a token needs for the backward pass."""
    size = 2 if half else 4
    predictions = {"masked": 1, "language": 1, "sides": 2}  # over the vocabulary, by head
    logits = config.output_vocabulary * (2 * size + 4) * max((predictions.get(head, 0) for head in heads), default=0)
    if isinstance(config, NgramConfig):
        return logits
    if isinstance(config, BagConfig):  # rows of the table and the vector of a text
        return 4 * config.width * 4
    if isinstance(config, RecurrentConfig):  # gates and states in full precision; attention and its inputs
        return 4 * config.width * (8 * config.layers + 8) + logits
    activation = config.ffn_width * (3 if config.activation in GATED else 1)
    attention = (2 * config.attention.heads + 2 * config.kv_heads) * config.head_width
    layer = size * (attention + 4 * config.width + config.ffn_width + activation) + 4 * config.attention.heads
    layer += 2 * config.width if config.dropout else 0  # dropout masks
    depth = config.layers + config.decoder_layers
    blocks = depth * size * config.width + layer if gradient_checkpointing else depth * layer
    return blocks + 3 * size * config.width + logits


def check_disk(memory: MemoryPlan, folder: Path) -> None:
    """Warn before the first step if the disk is too small for the model and two training states (old and new)."""
    existing = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    needed = memory.stored + 2 * (2 * memory.stored + memory.optimizer)  # weights, the best of them, the optimizer
    if free < needed:
        warnings.warn(
            f"the disk of {folder} has {free / 1e6:,.1f} MB free, but the model and its training states need "
            f"up to {needed / 1e6:,.1f} MB. Free some space, or the model may not be written.",
            UserWarning,
            stacklevel=3,
        )


def free_memory(device: torch.device) -> int | None:
    """Free bytes of a device; None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def tokens_at_once(memory: MemoryPlan, device: torch.device, *, step: int) -> int:
    """As many tokens of a step as fit in memory; on the CPU at most `CPU_TOKENS`, since more is not faster."""
    free = free_memory(device)
    tokens = step if free is None else min(step, memory.fits(free))
    return tokens if device.type == "cuda" else min(tokens, max(CPU_TOKENS, MULTIPLE))
