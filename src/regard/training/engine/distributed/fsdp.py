"""Fully sharded training (FSDP2): weights, gradients and optimizer state split over the ranks, saved in shards."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.model.block import Block
from regard.model.network import Network
from regard.model.transformer import Output


def shard(network: Network) -> None:
    """Shard every weight over all ranks. Gradients are summed; each rank holds its shard of them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    _register_output()
    device = next(network.parameters()).device
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in [module for module in network.modules() if isinstance(module, Block)]:
        fully_shard(block, mesh=mesh)
    fully_shard(network, mesh=mesh, reshard_after_forward=True)
    for module in network.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


@cache
def _register_output() -> None:
    """Let FSDP see the tensors of a network's output.

    FSDP gathers the weights for the backward pass when a gradient of the output arrives. Torch 2.11 looks for tensors
    only in types that are registered; later versions look into every dataclass.
    """
    torch.export.register_dataclass(Output)


def is_shard(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")


def local(tensor: Tensor) -> Tensor:
    """This rank's shard of a tensor."""
    shard: Any = tensor
    values: Tensor = shard.to_local() if is_shard(tensor) else tensor
    return values


def unshard(network: nn.Module) -> None:
    """Gather every weight on every rank, to write the model folder; the network cannot run afterwards."""
    full: dict[int, nn.Parameter] = {}
    for module in network.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and is_shard(parameter):
                sharded: Any = parameter
                if id(parameter) not in full:  # tied weights stay tied
                    full[id(parameter)] = nn.Parameter(sharded.full_tensor().detach())
                module._parameters[name] = full[id(parameter)]


def save_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Each rank writes its shards as safetensors. If one rank fails, all raise an error."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is one process
        try:
            save(dict(tensors), storage_writer=writer, no_dist=not dist.is_initialized())
        except CheckpointException as error:
            failures = [f"rank {rank}: {failure[0]}" for rank, failure in error.failures.items()]
            raise OSError("; ".join(failures)) from error


def load_shards(folder: Path, parameters: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Weights, optimizer state, best and averaged weights, each sharded like its parameter."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = HuggingFaceStorageReader(str(folder))
    tensors = {key: _like(key, parameters) for key in reader.read_metadata().state_dict_metadata}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        load(tensors, storage_reader=reader, no_dist=not dist.is_initialized())
    state: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizer": {}, "best": {}, "average": {}}
    for key, tensor in tensors.items():
        kind, _, name = key.partition("|")
        state[kind][name] = tensor
    return state


def _like(key: str, parameters: Mapping[str, Tensor]) -> Tensor:
    _, name, moment = [*key.split("|"), ""][:3]
    if moment == "step":
        return torch.zeros((), device=parameters[name].device)
    return torch.zeros_like(parameters[name].detach())
