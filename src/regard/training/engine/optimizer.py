"""AdamW with what fine-tuning needs: no decay on norms and biases, rates by layer, frozen parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import InputError, setting
from regard.model.network import Network
from regard.training.engine.fsdp import is_shard
from regard.training.settings import Settings

LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.")
WORDS = re.compile(r"^(encoder|decoder)\.(embeddings|tokens)\.")
PLACES = re.compile(r"^(encoder|decoder)\.bias\.")  # distances between places, which the first layer reads already


def freeze(network: Network, parts: Iterable[str]) -> None:
    """Take parts out of the training: "embeddings", "encoder", "decoder", "heads", or the number of a layer."""
    for part in parts:
        held = [parameter for name, parameter in network.named_parameters() if _belongs(name, part)]
        if not held:
            depth = network.reader.depth
            raise InputError(
                f'{setting("freeze")}: there is no part "{part}" to freeze; expected embeddings, encoder, decoder, '
                f"heads, or a layer from 0 to {depth - 1}."
            )
        for parameter in held:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in network.parameters()):
        fix = f"Leave one out of {setting('freeze')}."
        raise InputError(f"every part of the network is frozen, so there is nothing to train. {fix}")


def _belongs(name: str, part: str) -> bool:
    if part == "embeddings":
        return WORDS.match(name) is not None
    layer = LAYER.match(name)
    if part.isdigit():
        return layer is not None and layer[2] == part
    return name.startswith(f"{part}.") and part in ("encoder", "decoder", "heads")


def depth_of(name: str, layers: int) -> int:
    """How far up a parameter stands: 0 the embeddings, 1 the first layer, above the last the heads."""
    layer = LAYER.match(name)
    if layer is not None:
        return int(layer[2]) + 1
    return 0 if WORDS.match(name) else 1 if PLACES.match(name) else layers + 1


def parameter_groups(network: Network, settings: Settings) -> list[dict[str, Any]]:
    """Parameters that share a rate and a decay; `share` is the rate's share of the highest."""
    numbers = [int(layer[2]) for name, _ in network.named_parameters() if (layer := LAYER.match(name))]
    layers = 1 + max(numbers, default=-1)  # that have weights of their own
    found: dict[tuple[float, float], list[Tensor]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            share = settings.layerwise_lr_decay ** (layers + 1 - depth_of(name, layers))
            decay = settings.weight_decay if parameter.dim() > 1 else 0.0
            found.setdefault((share, decay), []).append(parameter)
    return [{"params": held, "share": share, "weight_decay": decay} for (share, decay), held in found.items()]


def build_optimizer(network: Network, settings: Settings, *, lr: float) -> torch.optim.AdamW:
    """Fused; on a GPU with rates that a recorded graph can read."""
    device = next(network.parameters()).device
    assert settings.adam_beta2 is not None
    optimizer = torch.optim.AdamW(
        parameter_groups(network, settings),
        lr=lr,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_eps,
        fused=True,
        capturable=device.type == "cuda",
    )
    if not any(is_shard(parameter) for parameter in network.parameters()):  # shards and plain tensors do not mix
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(lr * group["share"], dtype=torch.float32, device=device)
    return optimizer


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The rate of every group, in place."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr * group["share"])
        else:
            group["lr"] = lr * group["share"]


def allocate_state(optimizer: torch.optim.Optimizer) -> None:
    """Make the moments of every parameter that has a gradient, all of them or none.

    AdamW itself makes them one after the other inside its first step: where memory runs out there, part of the step is
    applied and one parameter keeps half of its state.
    """
    fresh = {
        parameter: {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
        }
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None and parameter not in optimizer.state
    }
    optimizer.state.update(fresh)


def named_state(network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Everything the optimizer remembers, by the name of the parameter and of what it is."""
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    return {
        f"{names[id(parameter)]}|{what}": value
        for parameter, held in optimizer.state.items()
        for what, value in held.items()
    }


def restore_state(network: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    """Give back what `named_state` told."""
    parameters = dict(network.named_parameters())
    for key, value in state.items():
        name, _, what = key.rpartition("|")
        parameter = parameters[name]
        held = optimizer.state[parameter]
        if what in held:
            held[what].copy_(value)
        else:
            held[what] = value.clone().to(parameter.device)
