"""Queries and keys of every attention layer, recorded while the network runs.

Shapes: N tokens, M keys, H heads, G key-value heads, K head width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

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


def record_layers(network: Transformer, name: str, batch: Ragged) -> tuple[HeadInputs, ...]:
    """The inputs of all layers of a network's only stack, which is called `name` in it."""
    paths = attention_paths(name, network.main)
    with record_attention_inputs(network, sorted(set(paths))) as seen:
        network.main(batch)
    return tuple(in_order(paths, seen))


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
