"""Methods by name. To add one: a file with a `Method`, and its entry here."""

from __future__ import annotations

from regard.errors import InputError, did_you_mean, setting
from regard.look.explain.methods import (
    attention,
    attention_rollout,
    decomposition,
    integrated_gradients,
    occlusion,
    random_order,
)
from regard.look.explain.methods.method import Method
from regard.model.network import Network

METHODS: dict[str, Method] = {
    module.METHOD.name: module.METHOD
    for module in (
        decomposition,
        occlusion,
        integrated_gradients,
        attention_rollout,
        attention,
        random_order,
    )
}


def find_method(name: str, network: Network) -> Method:
    """The method of that name; an error if it does not exist or does not fit the network."""
    name = name.replace("-", "_")
    if name not in METHODS:
        raise InputError(f'{setting("method")} "{name}" is not known.{did_you_mean(name, METHODS)}')
    method = METHODS[name]
    why = method.why_not(network)
    if why is not None:
        raise InputError(
            f"{name} cannot explain this model: {why}. Methods that can: {', '.join(methods_for(network))}."
        )
    return method


def methods_for(network: Network) -> list[str]:
    """The names of the methods that fit a network, the default first."""
    return [name for name, method in METHODS.items() if method.why_not(network) is None]
