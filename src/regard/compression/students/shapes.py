"""Students: fewer layers, fewer feed-forward units and a smaller width, all cut out of the teacher.

Shapes: D width, F feed-forward units, H heads, K head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.checkpoint.folder import Checkpoint
from regard.compression.students.importance import Importance
from regard.config import ModelConfig
from regard.model.block import GATED
from regard.model.network import build_network
from regard.tasks.task import class_count


@dataclass(frozen=True)
class Shape:
    """The size of a student."""

    layers: int
    width: int
    ffn_width: int


def can_shrink(checkpoint: Checkpoint) -> bool:
    """Whether students can be cut out of this network: an encoder whose layers have weights of their own."""
    config = checkpoint.config
    return (
        isinstance(config, ModelConfig)
        and config.kind == "encoder"
        and config.distinct_layers in (None, config.layers)
        and config.embedding_width is None
        and config.kv_heads == config.attention.heads
        and config.attention.heads * config.head_width == config.width
        and config.attention.score == "scaled"
        and config.attention.global_every == 0
        and config.activation not in GATED
    )


def kept_layers(layers: int, count: int) -> list[int]:
    """Evenly spaced layers with the last one among them, which the heads read."""
    return [int((number + 1) * layers / count) - 1 for number in range(count)]


def shrink(checkpoint: Checkpoint, shape: Shape, importance: Importance) -> Checkpoint:
    """A student of this shape: the most important units, heads and dimensions of evenly spaced layers.

    Dimensions are cut in blocks of the head width, so that a layer whose heads copy their dimensions (see
    `regard.model.mean_layer`) still does; the last layer keeps the heads of these blocks.
    """
    config = checkpoint.config
    assert isinstance(config, ModelConfig)
    heads = shape.width // config.head_width
    if heads * config.head_width != shape.width:
        raise ValueError(f"width {shape.width} is not a multiple of the head width {config.head_width}")
    attention = replace(config.attention, heads=heads, head_width=None)
    new_config = replace(
        config,
        layers=shape.layers,
        distinct_layers=None,
        width=shape.width,
        ffn_width=shape.ffn_width,
        attention=attention,
    )
    network = build_network(new_config, head_sizes(checkpoint))
    blocks = top(importance.dimensions.view(-1, config.head_width).sum(1), heads)
    dims_D = expanded(blocks, config.head_width)
    source = {name: tensor.cpu() for name, tensor in checkpoint.network.state_dict().items()}
    state = {name: tensor for name, tensor in source.items() if ".layers." not in name}
    state = {name: _cut_outer(name, tensor, dims_D, config.width) for name, tensor in state.items()}
    for new, old in enumerate(kept_layers(config.layers, shape.layers)):
        chosen_heads = blocks if old == config.layers - 1 else top(importance.heads[old], heads)
        units_F = top(importance.units[old], shape.ffn_width)
        for name, tensor in _block_tensors(source, old).items():
            cut = _cut_block(name, tensor, dims_D, expanded(chosen_heads, config.head_width), units_F, config)
            state[f"encoder.layers.{new}.{name}"] = cut
    network.load_state_dict(state)
    return replace(checkpoint, config=new_config, network=network.eval(), companion_files={}, new_tensors=())


def head_sizes(checkpoint: Checkpoint) -> dict[str, int]:
    """The heads of a network with their numbers of classes."""
    return {
        name: class_count(head) if name in ("sequence", "token") else 0
        for name, head in checkpoint.network.heads.items()
    }


def top(importance: Tensor, count: int) -> Tensor:
    """The indices of the most important ones, in their order."""
    return importance.topk(count).indices.sort().values


def expanded(blocks: Tensor, width: int) -> Tensor:
    """The indices of all dimensions of these blocks."""
    return (blocks.unsqueeze(1) * width + torch.arange(width)).flatten()


def _block_tensors(state: dict[str, Tensor], layer: int) -> dict[str, Tensor]:
    prefix = f"encoder.layers.{layer}."
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _cut_outer(name: str, tensor: Tensor, dims_D: Tensor, width: int) -> Tensor:
    """Embeddings, norms and heads with these dimensions only."""
    output = name.endswith(("output.weight", "output.bias"))
    for axis in range(tensor.dim()):
        is_classes = output and axis == 0
        is_rows = name.startswith("encoder.embeddings.") and name.endswith("weight") and axis == 0 and tensor.dim() == 2
        if tensor.shape[axis] == width and not is_classes and not is_rows:
            tensor = tensor.index_select(axis, dims_D)
    return tensor.clone()


def _cut_block(
    name: str, tensor: Tensor, dims_D: Tensor, head_dims: Tensor, units_F: Tensor, config: ModelConfig
) -> Tensor:
    """One tensor of a block with these dimensions, heads and units only."""
    part = name.rsplit(".", 1)[0]
    rows: dict[str, Sequence[Tensor]] = {"attention.out": (dims_D,), "feedforward.up": (units_F,)}
    columns = {
        "attention.qkv": dims_D,
        "attention.out": head_dims,
        "feedforward.up": dims_D,
        "feedforward.down": units_F,
    }
    if part == "attention.qkv":
        row_index = torch.cat([head_dims + number * config.width for number in range(3)])
    else:
        row_index = rows.get(part, (dims_D,))[0]
    cut = tensor.index_select(0, row_index)
    return cut.index_select(1, columns[part]).clone() if cut.dim() == 2 else cut.clone()
