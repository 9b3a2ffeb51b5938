"""Weights, gradients and optimizer split over the ranks (FSDP), and a state in shards for any number of ranks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.model.block import Block
from regard.model.network import Network


def shard(network: Network) -> None:
    """Split every weight over all ranks. Gradients come back summed, each rank holding its part of them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    device = next(network.parameters()).device
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in [module for module in network.modules() if isinstance(module, Block)]:
        fully_shard(block, mesh=mesh)
    fully_shard(network, mesh=mesh, reshard_after_forward=True)
    for module in network.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def is_shard(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")


def local(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor."""
    part: Any = tensor
    held: Tensor = part.to_local() if is_shard(tensor) else tensor
    return held


def unshard(network: nn.Module) -> None:
    """Every rank holds every weight again, for the folder to be written; the network does not run after it."""
    known: dict[int, nn.Parameter] = {}
    for module in network.modules():
        for name, held in module._parameters.items():
            if held is not None and is_shard(held):
                part: Any = held
                if id(held) not in known:
                    known[id(held)] = nn.Parameter(part.full_tensor().detach())
                module._parameters[name] = known[id(held)]


def save_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Each rank writes what it holds, as safetensors. What one of them cannot write is an error of all."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is one process
        try:
            save(dict(tensors), storage_writer=writer, no_dist=not dist.is_initialized())
        except CheckpointException as error:
            said = [f"rank {rank}: {failure[0]}" for rank, failure in error.failures.items()]
            raise OSError("; ".join(said)) from error


def load_shards(folder: Path, parameters: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Weights, optimizer and best weights, each laid out like the parameter it belongs to."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = HuggingFaceStorageReader(str(folder))
    wanted = {key: _like(key, parameters) for key in reader.read_metadata().state_dict_metadata}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        load(wanted, storage_reader=reader, no_dist=not dist.is_initialized())
    found: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizer": {}, "best": {}}
    for key, tensor in wanted.items():
        kind, _, name = key.partition("|")
        found[kind][name] = tensor
    return found


def _like(key: str, parameters: Mapping[str, Tensor]) -> Tensor:
    _, name, what = [*key.split("|"), ""][:3]
    if what == "step":
        return torch.zeros((), device=parameters[name].device)
    return torch.zeros_like(parameters[name].detach())
