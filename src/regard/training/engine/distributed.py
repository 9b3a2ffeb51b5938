"""The ranks of a run: one, unless torchrun started several."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.data.batching.packing import Ints


@dataclass(frozen=True)
class World:
    """This rank among all of them."""

    rank: int = 0
    ranks: int = 1

    @property
    def is_main_process(self) -> bool:
        """Whether this rank writes files and speaks."""
        return self.rank == 0

    def rank_rows(self, rows: Ints) -> Ints:
        """This rank's part of the rows of a step: they are sorted by length, so every rank has about as many tokens."""
        return rows[self.rank :: self.ranks]

    def all_reduce(self, numbers: Tensor) -> None:
        """The sum over all ranks, in place."""
        if self.ranks > 1:
            dist.all_reduce(numbers)

    def barrier(self) -> None:
        if self.ranks > 1:
            dist.barrier()

    def wrap(self, network: nn.Module) -> nn.Module | None:
        """The network with gradients averaged over ranks as they come; None where there is one rank."""
        if self.ranks == 1:
            return None
        from torch.nn.parallel import DistributedDataParallel

        device = next(network.parameters()).device
        places = [device.index] if device.type == "cuda" else None
        return DistributedDataParallel(network, device_ids=places)

    def broadcast_path(self, path: Path) -> Path:
        """The path that the first rank names."""
        if self.ranks == 1:
            return path
        held: list[Any] = [str(path)]
        dist.broadcast_object_list(held)
        return Path(held[0])

    def any_rank(self, flag: bool, device: torch.device) -> bool:
        """Whether any rank says so: they all hear the same."""
        if self.ranks == 1:
            return flag
        said = torch.tensor(float(flag), device=device)
        dist.all_reduce(said)
        return bool(said > 0)


def join_process_group(device: torch.device) -> tuple[World, torch.device]:
    """The world that torchrun made, and this rank's device in it."""
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
    """Whether this process is the only one, or the first of those that torchrun started; also after they have left."""
    return not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


def leave_process_group(world: World) -> None:
    """After the last step: the ranks go their own ways."""
    if world.ranks > 1 and dist.is_torchelastic_launched():
        dist.destroy_process_group()
