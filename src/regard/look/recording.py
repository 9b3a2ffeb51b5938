"""Queries and keys of every attention layer, recorded while the network runs; of long texts, as far as needed.

Shapes: N tokens, M keys, H heads, G key-value heads, K head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn

from regard.model.block import Block
from regard.model.hooks import record_attention_inputs
from regard.model.kernels.dense import AttentionCall
from regard.model.transformer import Stack, Transformer
from regard.ragged import Ragged


@dataclass(frozen=True, eq=False)
class HeadInputs:
    """Queries, keys and the call of one attention layer: everything that its weights depend on."""

    q_NHK: Tensor
    k_MGK: Tensor
    call: AttentionCall

    @property
    def nbytes(self) -> int:
        return self.q_NHK.nbytes + self.k_MGK.nbytes


class LazyLayers(Sequence[HeadInputs]):
    """The layers of one stack. The network runs as far as the layer that is asked for, and no further."""

    def __init__(
        self, network: Transformer, name: str, batch: Ragged, context: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.network, self.name, self.batch, self.context = network, name, batch, context
        self.stack: Stack = network.main
        self._layers: list[HeadInputs] = []

    def __len__(self) -> int:
        return self.stack.depth

    @overload
    def __getitem__(self, index: int) -> HeadInputs: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HeadInputs]: ...
    def __getitem__(self, index: int | slice) -> HeadInputs | Sequence[HeadInputs]:
        places = range(len(self))[index]
        last = max(places, default=-1) if isinstance(places, range) else places
        if last >= len(self._layers):
            with self.context():
                self._layers = list(_record_until(self.network, self.name, self.stack, self.batch, last))
        return self._layers[index]

    @property
    def recorded(self) -> Sequence[HeadInputs]:
        """The layers that have run."""
        return self._layers


class _Enough(Exception):
    """The last layer that is needed has its queries and keys."""


@torch.no_grad()
def _record_until(network: Transformer, name: str, stack: Stack, batch: Ragged, last: int) -> Iterator[HeadInputs]:
    """The inputs of the layers up to `last`; the attention of the last one does not run."""
    paths = attention_paths(name, stack)[: last + 1]
    runs = 0

    def stop(*_: Any) -> None:
        nonlocal runs
        runs += 1
        if runs == paths.count(paths[-1]):
            raise _Enough

    with record_attention_inputs(network, sorted(set(paths))) as seen:
        mix: nn.Module = network.get_submodule(f"{paths[-1]}.mix")
        handle = mix.register_forward_pre_hook(stop)
        try:
            stack(batch, layers=last + 1)
        except _Enough:
            pass
        finally:
            handle.remove()
    yield from in_order(paths, seen)


def attention_paths(name: str, stack: Stack, kind: str = "attention") -> list[str]:
    """The attention modules of a stack, in the order in which its layers run."""
    return [f"{name}.layers.{stack.layer_index(i)}.{kind}" for i in range(stack.depth)]


def in_order(paths: Sequence[str], seen: dict[str, list[tuple[Tensor, Tensor, AttentionCall]]]) -> Iterator[HeadInputs]:
    """The recorded inputs of each layer; layers that share weights run several times."""
    for i, path in enumerate(paths):
        yield HeadInputs(*seen[path][paths[:i].count(path)])


def record_translation(network: Transformer, batch: Ragged, target: Ragged) -> dict[str, tuple[HeadInputs, ...]]:
    """The inputs of the encoder's, the decoder's and the cross-attention, by part."""
    assert network.encoder is not None
    assert network.decoder is not None
    paths = {
        "encoder": attention_paths("encoder", network.encoder),
        "decoder": attention_paths("decoder", network.decoder),
        "cross": attention_paths("decoder", network.decoder, "cross"),
    }
    with record_attention_inputs(network, sorted({path for each in paths.values() for path in each})) as seen:
        network(batch, target)
    return {name: tuple(in_order(each, seen)) for name, each in paths.items()}


def layer_masks(stack: Stack) -> tuple[tuple[int | None, int | None], ...]:
    """How far a query of each layer may attend to the left and to the right; None for any distance."""
    masks = []
    for i in range(stack.depth):
        block = stack.layers[stack.layer_index(i)]
        assert isinstance(block, Block)
        masks.append((block.attention.window, block.attention.right))
    return tuple(masks)
