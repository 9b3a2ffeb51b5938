"""Random numbers that do not disturb those of the caller: torch's global state is restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch on the CPU and on the device for a block of code."""
    with preserved_random_state(device):
        torch.manual_seed(seed)
        yield


@contextmanager
def preserved_random_state(device: torch.device) -> Iterator[None]:
    """Restore torch's random state, on the CPU and on the device, at the end of a block of code."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield
