"""Switch heads or layers of a Transformer off, for a while or in a copy of the model.

A head that is switched off contributes nothing: its output is zero. A layer that is switched off passes on what it
reads. Layers are counted from 1, heads from 0, as in `model.attention`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import BagConfig, RecurrentConfig
from regard.errors import InputError
from regard.model.attention import Attention
from regard.model.network import Network
from regard.model.transformer import Stack, Transformer

Head = tuple[int, int]  # layer from 1 on, head from 0 on


def find_stack(network: Network, stack: str) -> Stack:
    """The stack of a Transformer: "main" (with the output), "reader" (reads the text), "encoder" or "decoder"."""
    if isinstance(network.config, RecurrentConfig):
        raise InputError("a recurrent network has no heads or blocks that could be switched off.")
    if isinstance(network.config, BagConfig) or not isinstance(network, Transformer):
        raise InputError("a baseline without Transformer blocks has no heads that could be switched off.")
    stacks = {
        "main": network.main,
        "reader": network.reader,
        "encoder": network.encoder,
        "decoder": network.decoder,
    }
    chosen = stacks.get(stack)
    if chosen is None:
        names = [name for name, part in stacks.items() if part is not None]
        raise InputError(f'this network has no stack "{stack}", expected {", ".join(names)}.')
    return chosen


def check_heads(stack: Stack, heads: Sequence[Head], layers: Sequence[int] = ()) -> tuple[list[Head], list[int]]:
    """The same with negative layers counted from the end; an error for what does not exist."""
    depth = stack.depth
    for layer in [*(layer for layer, _ in heads), *layers]:
        if layer == 0 or not -depth <= layer <= depth:
            raise InputError(f"layer {layer} does not exist: this model has layers 1 to {depth}, and -1 is the last.")
    positive = [(layer % (depth + 1) if layer < 0 else layer, head) for layer, head in heads]
    count = _attention(stack, 0).head_counts[0]
    for _, head in positive:
        if not 0 <= head < count:
            raise InputError(f"head {head} does not exist: a layer of this model has heads 0 to {count - 1}.")
    return positive, [layer % (depth + 1) if layer < 0 else layer for layer in layers]


@contextmanager
def ablate(
    network: Network,
    *,
    heads: Sequence[Head] = (),
    layers: Sequence[int] = (),
    stack: str = "main",
    cross: bool = False,
) -> Iterator[None]:
    """Run the network without these heads and layers while the context is open.

    heads: pairs of layer and head.
    layers: whole layers.
    stack: of an encoder-decoder, "encoder" or "decoder"; `cross` is for the heads of its cross-attention.
    """
    part = find_stack(network, stack)
    chosen, skipped = check_heads(part, heads, layers)
    if cross and _attention(part, 0, cross=False) is not None and part.layers[0].cross is None:
        raise InputError("only the decoder of an encoder-decoder has cross-attention.")
    with ExitStack() as hooks:
        for index in range(part.distinct):
            runs = [layer for layer in range(part.depth) if part.layer_index(layer) == index]
            masks = [[head for layer, head in chosen if layer == run + 1] for run in runs]
            if any(masks):
                attention = _attention(part, index, cross=cross)
                hooks.callback(attention.mix.register_forward_hook(_zero_heads(masks)).remove)
            if any(run + 1 in skipped for run in runs):
                off = [run + 1 in skipped for run in runs]
                hooks.callback(part.layers[index].register_forward_hook(_pass_on(off)).remove)
        yield


def _attention(stack: Stack, index: int, *, cross: bool = False) -> Attention:
    block = stack.layers[index]
    attention = block.cross if cross else block.attention
    assert isinstance(attention, Attention)
    return attention


def _zero_heads(masks: list[list[int]]) -> Callable[[nn.Module, Any, Tensor], Tensor]:
    """A hook for each run of a module, in turn: layers that share weights run several times."""
    calls = iter(range(1 << 62))

    def zero(_: nn.Module, __: Any, value_NHK: Tensor) -> Tensor:
        heads = masks[next(calls) % len(masks)]
        if not heads:
            return value_NHK
        keep_H = torch.ones(value_NHK.shape[1], dtype=value_NHK.dtype, device=value_NHK.device)
        keep_H[heads] = 0
        return value_NHK * keep_H.unsqueeze(1)

    return zero


def _pass_on(off: list[bool]) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
    """A hook that returns what a block read."""
    calls = iter(range(1 << 62))

    def skip(_: nn.Module, args: tuple[Any, ...], value_ND: Tensor) -> Tensor:
        return args[0] if off[next(calls) % len(off)] else value_ND

    return skip


@torch.no_grad()
def without_heads(network: Network, heads: Sequence[Head], *, stack: str = "main", cross: bool = False) -> Network:
    """A copy of the network in which the weights of these heads are zero: values and output projection."""
    part = find_stack(network, stack)
    chosen, _ = check_heads(part, heads)
    shared = part.distinct < part.depth
    if (
        shared
        and {(part.layer_index(layer - 1), head) for layer, head in chosen}.__len__() * part.depth
        != len(chosen) * part.distinct
    ):
        raise InputError(
            "the layers of this model share their weights, so a head is removed from all of them or from none. Give it "
            "for every layer."
        )
    new = copy.deepcopy(network)
    for layer, head in chosen:
        target = find_stack(new, stack)
        zero_head(_attention(target, target.layer_index(layer - 1), cross=cross), head)
    return new


def zero_head(attention: Attention, head: int) -> None:
    """Set the columns of the output projection to zero, and the rows of the values if no other head uses them."""
    heads, kv_heads, _ = attention.head_counts
    width = attention.head_width
    attention.out.weight[:, head * width : (head + 1) * width] = 0
    if heads != kv_heads:
        return
    projection = attention.memory if attention.cross else attention.qkv
    first = (kv_heads if attention.cross else heads + kv_heads) * width + head * width
    projection.weight[first : first + width] = 0
    if projection.bias is not None:
        projection.bias[first : first + width] = 0
