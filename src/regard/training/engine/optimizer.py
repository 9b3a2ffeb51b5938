"""The optimizer of a network: weight decay but of norms and biases, layer-wise rates, frozen parts; its state."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import InputError, setting
from regard.model.network import Network
from regard.training.engine.adamw import AdamW
from regard.training.engine.distributed.fsdp import is_shard
from regard.training.settings import Settings

LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.")
EMBEDDINGS = re.compile(r"^(encoder|decoder)\.(embeddings|tokens)\.")
POSITION_BIAS = re.compile(r"^(encoder|decoder)\.bias\.")  # relative position bias, used from the first layer on


def freeze(network: Network, parts: Sequence[str]) -> None:
    """Exclude parts from training: "embeddings", "encoder", "decoder", "heads", or a layer number; or only "none"."""
    for parameter in frozen_parameters(network, parts):
        parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise InputError(
            f"every part of the network is frozen, so nothing is trained. Remove a part from {setting('freeze')}."
        )


def frozen_parameters(network: Network, parts: Sequence[str]) -> list[nn.Parameter]:
    """The parameters of parts that `freeze` excludes; raises InputError for a part that the network lacks."""
    frozen: list[nn.Parameter] = []
    for part in parts if list(parts) != ["none"] else ():
        parameters = [parameter for name, parameter in network.named_parameters() if belongs_to(name, part)]
        if not parameters:
            depth = network.reader.depth
            raise InputError(
                f'{setting("freeze")}: there is no part "{part}" to freeze; expected embeddings, encoder, decoder, '
                f"heads, or a layer from 0 to {depth - 1}; none alone trains all parts."
            )
        frozen += parameters
    return frozen


def belongs_to(name: str, part: str) -> bool:
    """Whether the parameter of this name is in a part, as `freeze` names them."""
    if part == "embeddings":
        return EMBEDDINGS.match(name) is not None
    layer = LAYER.match(name)
    if part.isdigit():
        return layer is not None and layer[2] == part
    return name.startswith(f"{part}.") and part in ("encoder", "decoder", "heads")


def depth_of(name: str, layers: int) -> int:
    """The depth of a parameter: 0 for the embeddings, 1 for the first layer, layers + 1 for the heads."""
    layer = LAYER.match(name)
    if layer is not None:
        return int(layer[2]) + 1
    if EMBEDDINGS.match(name):
        return 0
    if POSITION_BIAS.match(name):
        return 1
    return layers + 1


def parameter_groups(network: Network, settings: Settings) -> list[dict[str, Any]]:
    """Parameters grouped by learning rate and weight decay; `lr_scale` is a group's fraction of the full rate.

    With layer-wise decay d (https://arxiv.org/abs/1801.06146) the heads have the full rate, the last layer d times it,
    the one below d² times it, and so on down to the embeddings.
    """
    numbers = [int(layer[2]) for name, _ in network.named_parameters() if (layer := LAYER.match(name))]
    layers = 1 + max(numbers, default=-1)  # with weights of their own
    groups: dict[tuple[float, float], list[Tensor]] = {}
    by_layer = 1.0 if settings.layerwise_lr_decay is None else settings.layerwise_lr_decay
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            scale = by_layer ** (layers + 1 - depth_of(name, layers))
            decay = settings.weight_decay if parameter.dim() > 1 else 0.0
            groups.setdefault((scale, decay), []).append(parameter)
    return [
        {"params": parameters, "lr_scale": scale, "weight_decay": decay}
        for (scale, decay), parameters in groups.items()
    ]


class LBFGS(torch.optim.LBFGS):
    """torch's L-BFGS without the decorators that import torch's compiler at the first call, which takes seconds."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)


def build_optimizer(network: Network, settings: Settings, *, lr: float) -> AdamW:
    """Fused AdamW; the learning rates are tensors, so that a recorded CUDA graph reads new values."""
    device = next(network.parameters()).device
    assert settings.adam_beta2 is not None
    optimizer = AdamW(
        parameter_groups(network, settings),
        lr=lr,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_eps,
        fused=True,
        capturable=device.type == "cuda",
    )
    if not any(is_shard(parameter) for parameter in network.parameters()):  # shards and plain tensors do not mix
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(lr * group["lr_scale"], dtype=torch.float32, device=device)
    return optimizer


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the learning rate of every group in place."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr * group["lr_scale"])
        else:
            group["lr"] = lr * group["lr_scale"]


def named_state(network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer state as one dict with keys "parameter name|moment name"."""
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    return {
        f"{names[id(parameter)]}|{key}": value
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
    }


def restore_state(network: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    """Load a state that `named_state` returned."""
    parameters = dict(network.named_parameters())
    for full_name, value in state.items():
        name, _, key = full_name.rpartition("|")
        parameter = parameters[name]
        own = optimizer.state[parameter]
        if key in own:
            own[key].copy_(value)
        else:
            own[key] = value.clone().to(parameter.device)
