"""Ranks of a distributed run: one, unless torchrun started several."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.text.flat_tokens import Ints

GLOO_SECONDS = 0.2  # for its threads to free their tensors


@dataclass(frozen=True)
class World:
    """This process among all ranks."""

    rank: int = 0
    ranks: int = 1

    @property
    def is_main_process(self) -> bool:
        """Whether this rank writes files and prints."""
        return self.rank == 0

    def rank_rows(self, rows: Ints) -> Ints:
        """This rank's rows of a step. Rows are sorted by length, so every rank gets about as many tokens."""
        return rows[self.rank :: self.ranks]

    def all_reduce(self, numbers: Tensor) -> None:
        """Sum over all ranks, in place."""
        if self.ranks > 1:
            dist.all_reduce(numbers)

    def barrier(self) -> None:
        if self.ranks > 1:
            dist.barrier()

    def wrap(self, network: nn.Module) -> nn.Module | None:
        """The network in DistributedDataParallel; None if there is one rank."""
        if self.ranks == 1:
            return None
        from torch.nn.parallel import DistributedDataParallel

        device = next(network.parameters()).device
        device_ids = [device.index] if device.type == "cuda" else None
        return DistributedDataParallel(network, device_ids=device_ids)

    def broadcast_path(self, path: Path) -> Path:
        """The path of the main process."""
        if self.ranks == 1:
            return path
        paths: list[Any] = [str(path)]
        dist.broadcast_object_list(paths)
        return Path(paths[0])

    def broadcast_weights(self, network: nn.Module) -> None:
        """Give all ranks the weights of the main process: what each computes for itself may differ in the last bits."""
        if self.ranks > 1:
            for weight in network.state_dict().values():
                dist.broadcast(weight, src=0)

    def any_rank(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is set on any rank; the same answer on all."""
        if self.ranks == 1:
            return flag
        total = torch.tensor(float(flag), device=device)
        dist.all_reduce(total)
        return bool(total > 0)


def join_process_group(device: torch.device) -> tuple[World, torch.device]:
    """Join the process group that torchrun started; returns the world and this rank's device."""
    if not dist.is_torchelastic_launched():
        return World(), device
    local = int(os.environ["LOCAL_RANK"])
    if device.type == "cuda":
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return World(dist.get_rank(), dist.get_world_size()), device


def is_main_process() -> bool:
    """Whether this is the only process or rank 0; also valid after the process group was left."""
    return not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


def leave_process_group(world: World) -> None:
    """Destroy the process group after the last step.

    The threads of gloo may still hold tensors of the last collective operation. If Python ends before they have freed
    them, the process aborts (https://github.com/pytorch/pytorch/pull/179291), so this function waits a little.
    """
    if world.ranks > 1 and dist.is_torchelastic_launched():
        is_gloo = dist.get_backend() == "gloo"
        dist.destroy_process_group()
        if is_gloo:
            time.sleep(GLOO_SECONDS)
