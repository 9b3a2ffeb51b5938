"""Networks without values on the meta device, and the tensors that are put into them."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.config import Config
from regard.model.initialization import initialize
from regard.model.network import Network, build_network


class _SkipInitialization(TorchFunctionMode):
    """Skips the random initialization of weights that are replaced; on the meta device it would import a compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, Tensor.normal_, Tensor.uniform_):
            return None  # callers do not use the returned tensor
        return func(*args, **(kwargs or {}))


def build_on_meta(config: Config, heads: Mapping[str, int]) -> Network:
    """A network on the meta device: every tensor has its shape, but no values."""
    with torch.device("meta"), _SkipInitialization():
        return build_network(config, heads)


def initial_values(network: Network, names: Sequence[str]) -> dict[str, Tensor]:
    """Randomly initialized values of these tensors of a network on the meta device."""
    values: dict[str, Tensor] = {}
    for parent in dict.fromkeys(name.rpartition(".")[0] for name in names):
        module = copy.deepcopy(network.get_submodule(parent))._apply(_empty, recurse=False)
        initialize(module, network.config)
        values |= {f"{parent}.{leaf}": value.detach() for leaf, value in module.named_parameters(recurse=False)}
        values |= {f"{parent}.{leaf}": torch.zeros_like(value) for leaf, value in module.named_buffers(recurse=False)}
    return {name: values[name] for name in names}


def network_key(network: Network, *more: str) -> str:
    """A digest of the weights, the architecture, and further texts; it does not depend on the model's folder."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(network.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {flat.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(flat.view(dtype=torch.uint8).numpy()))
    for text in (repr(network.config), *more):
        digest.update(text.encode())
    return digest.hexdigest()


def _empty(tensor: Tensor) -> Tensor:
    """A tensor on the CPU without values. `empty_like`, and so `to_empty`, would import sympy for a meta tensor."""
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def set_tensors(network: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Replace tensors of the network by these values; tied parameters stay tied."""
    tied: dict[int, list[str]] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        tied.setdefault(id(parameter), []).append(name)
    for name, value in values.items():
        if not _is_parameter(network, name):
            _assign(network, name, value)
            continue
        others = [other for other in tied[id(network.get_parameter(name))] if other != name]
        parameter = nn.Parameter(value, requires_grad=True)
        for path in (name, *others):
            _assign(network, path, parameter)


def _assign(network: nn.Module, name: str, value: Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    setattr(network.get_submodule(path), leaf, value)


def _is_parameter(network: nn.Module, name: str) -> bool:
    path, _, leaf = name.rpartition(".")
    return leaf in network.get_submodule(path)._parameters
