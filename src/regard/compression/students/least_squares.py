"""Students whose weights are fitted to the teacher in closed form, layer by layer, before any training.

In plain terms, it works as follows:

1. The teacher reads some thousand tokens. The principal directions of its hidden states, after the embeddings and after
   the kept layers, become the dimensions of a narrower student. Embeddings are projected onto them.
2. Queries, keys, values and feed-forward units are those of the kept heads and units; each is fitted by least squares,
   so that the student computes it from its own hidden states.
3. Output projections are fitted so that the sum before each norm is that of the teacher, projected. They also make up
   for the heads, units and layers that were left out, as far as a linear map can.
4. Scale and shift of each norm are fitted dimension by dimension, and the output layer of a head to the logits.

A part is fitted on what the student computes with the parts before it, so that errors do not add up. What this is
worth before and after training: benchmarks/LOG.md.

Shapes: N tokens, D width of the teacher, E width of the student, H heads, K head width.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checkpoint.folder import Checkpoint
from regard.compression.students.importance import Importance
from regard.compression.students.shapes import Shape, expanded, kept_layers, shrink, top
from regard.config import Config, ModelConfig
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import Record
from regard.model.attention import ForwardContext
from regard.model.block import Block
from regard.model.heads import ClassifierHead, HeadTransform, Pooler
from regard.model.mean_layer import ends_with_mean
from regard.model.transformer import Stack, Transformer
from regard.ragged import Ragged
from regard.tasks.task import Task

TOKENS = 24_576  # at most, of at most so many sequences, each cut to this length
SEQUENCES = 4_096
LENGTH = 96
PENALTY = 0.01  # of the squares of weights, relative to the mean variance of the inputs
HEAD_PENALTY = 0.1  # the same for the output layers of heads, which have fewer examples
EXAMPLES = 3  # per weight of a class; with fewer, an output layer is projected instead of fitted


def can_fit(config: Config) -> bool:
    """Whether the layers are those that are fitted here: post-norm blocks with biases, as those of BERT."""
    return (
        isinstance(config, ModelConfig)
        and not config.norm_first
        and config.norm == "layer"
        and config.bias
        and config.embedding_norm
        and config.positions.kind in ("learned", "none")
    )


@torch.no_grad()
def fit_student(checkpoint: Checkpoint, shape: Shape, importance: Importance, batch: Ragged) -> Checkpoint:
    """A student of this shape, fitted on the tokens of this batch. Computed on the CPU in fp32."""
    config = checkpoint.config
    assert isinstance(config, ModelConfig)
    student = shrink(checkpoint, shape, importance)
    teacher = copy.deepcopy(checkpoint.network).cpu().float().eval()
    assert isinstance(teacher, Transformer)
    assert isinstance(student.network, Transformer)
    layers = kept_layers(config.layers, shape.layers)
    directions_DE = torch.eye(config.width)
    if shape.width < config.width:
        directions_DE = principal_directions(teacher.reader, layers, batch, shape.width)
    averages = ends_with_mean(teacher)
    fit = _Fit(teacher, student.network, directions_DE, batch)
    fit.embeddings()
    before = -1
    for new, old in enumerate(layers):
        for skipped in range(before + 1, old):
            fit.goal_ND = _block(teacher.reader, skipped)(fit.goal_ND, fit.teacher_context)
        copies_mean = averages and old == config.layers - 1
        heads = None if copies_mean else top(importance.heads[old], shape.width // config.head_width)
        fit.block(_block(teacher.reader, old), _block(fit.student.reader, new), heads, importance.units[old])
        before = old
    fit.heads()
    return student


def evenly_spaced(records: Sequence[Record], count: int) -> list[Record]:
    """At most so many records from all over the data, which may be sorted by label."""
    step = max(len(records) / count, 1.0)
    return [records[int(number * step)] for number in range(min(count, len(records)))]


def fitting_batch(task: Task, records: Sequence[Record], preprocessing: Preprocessing) -> Ragged:
    """The first tokens of records from all over the data, as the teacher reads them."""
    examples = task.bind(preprocessing).examples(evenly_spaced(records, SEQUENCES), preprocessing, labeled=True)
    order = np.random.default_rng(0).permutation(len(examples))
    lengths = np.minimum(examples.lengths[order], LENGTH)
    count = int(np.searchsorted(np.cumsum(lengths), TOKENS)) + 1
    parts = [slice(start, start + size) for start, size in zip(examples.bounds[order], lengths, strict=False)][:count]
    segments = examples.segments
    return Ragged.of(
        [examples.ids[part].tolist() for part in parts],
        segments=None if segments is None else [segments[part].tolist() for part in parts],
    )


@torch.no_grad()
def principal_directions(stack: Stack, layers: list[int], batch: Ragged, count: int) -> Tensor:
    """(D, E) the directions in which the hidden states vary most, each of these layers counting alike."""
    context = stack.context(batch, None, None, None)
    hidden_ND: Tensor = stack.embeddings(batch)
    covariance_DD = _correlation(hidden_ND)
    for number in range(stack.depth):
        hidden_ND = _block(stack, number)(hidden_ND, context)
        if number in layers:
            covariance_DD = covariance_DD + _correlation(hidden_ND)
    directions_DE: Tensor = torch.linalg.eigh(covariance_DD).eigenvectors[:, -count:].float()
    return directions_DE @ nearest_axes(directions_DE)


def nearest_axes(directions_DE: Tensor) -> Tensor:
    """(E, E) the rotation after which the directions are as near as possible to axes of the teacher's.

    A norm scales axes, and AdamW takes equal steps along them: principal directions, with variances that differ by
    orders of magnitude, are bad axes for both.
    """
    chosen = top(directions_DE.square().sum(1), directions_DE.shape[1])
    left_EE, _, right_EE = torch.linalg.svd(directions_DE[chosen].T)
    rotation_EE: Tensor = left_EE @ right_EE
    return rotation_EE


def _correlation(hidden_ND: Tensor) -> Tensor:
    """(D, D) covariances, relative to the mean variance."""
    centered_ND = (hidden_ND - hidden_ND.mean(0)).double()
    return centered_ND.T @ centered_ND / centered_ND.square().sum().clamp(min=1e-12)


def ridge(x_NI: Tensor, y_NO: Tensor, penalty: float = PENALTY) -> tuple[Tensor, Tensor]:
    """(O, I) weights and (O,) bias of the linear layer that maps x to y with the least squared error."""
    mean_I, mean_O = x_NI.mean(0), y_NO.mean(0)
    centered_NI = x_NI - mean_I
    gram_II = (centered_NI.T @ centered_NI).double()
    gram_II.diagonal().add_(penalty * gram_II.diagonal().mean().clamp(min=1e-12))
    weight_IO = torch.linalg.solve(gram_II, (centered_NI.T @ (y_NO - mean_O)).double()).float()
    return weight_IO.T.contiguous(), mean_O - mean_I @ weight_IO


def _block(stack: Stack, number: int) -> Block:
    block = stack.layers[number]
    assert isinstance(block, Block)
    return block


def _fit_linear(layer: nn.Module, x_NI: Tensor, y_NO: Tensor, penalty: float = PENALTY) -> None:
    weight_OI, bias_O = ridge(x_NI, y_NO, penalty)
    layer.get_parameter("weight").copy_(weight_OI)
    layer.get_parameter("bias").copy_(bias_O)


def _fit_norm(norm: nn.Module, x_NE: Tensor, y_NE: Tensor) -> Tensor:
    """Fit scale and shift of a norm of x to y; returns the norm's output."""
    plain_NE = F.layer_norm(x_NE, x_NE.shape[1:])
    mean_E, goal_E = plain_NE.mean(0), y_NE.mean(0)
    centered_NE = plain_NE - mean_E
    scale_E = (centered_NE * (y_NE - goal_E)).mean(0) / centered_NE.square().mean(0).clamp(min=1e-12)
    norm.get_parameter("weight").copy_(scale_E)
    norm.get_parameter("bias").copy_(goal_E - scale_E * mean_E)
    output_NE: Tensor = norm(x_NE)
    return output_NE


@dataclass(eq=False)
class _Fit:
    """Teacher and student, side by side on the same tokens, as far as they have been fitted."""

    teacher: Transformer
    student: Transformer
    directions_DE: Tensor
    batch: Ragged

    def embeddings(self) -> None:
        """Project all tables, and fit the norm."""
        theirs, ours = self.teacher.reader.embeddings, self.student.reader.embeddings
        for name in ("tokens", "places", "segments"):
            table, source = getattr(ours, name), getattr(theirs, name)
            if table is not None:
                table.weight.copy_(source.weight @ self.directions_DE)
        self.goal_ND: Tensor = theirs(self.batch)
        inputs: list[Tensor] = []
        handle = ours.norm.register_forward_hook(lambda _, args, __: inputs.append(args[0]))
        ours(self.batch)
        handle.remove()
        self.hidden_NE = _fit_norm(ours.norm, inputs[0], self.goal_ND @ self.directions_DE)
        self.teacher_context: ForwardContext = self.teacher.reader.context(self.batch, None, None, None)
        self.context: ForwardContext = self.student.reader.context(self.batch, None, None, None)

    def block(self, theirs: Block, ours: Block, heads: Tensor | None, units_F: Tensor) -> None:
        """Fit a block to one of the teacher, with these heads; without heads, to one that averages all tokens."""
        self._queries_keys_values(theirs, ours, heads)
        mixed_NE = ours.attention.mix_heads(self.hidden_NE, self.context)
        sum_ND = self.goal_ND + theirs.attention(self.goal_ND, self.teacher_context)
        self._residual(ours.attention.out, mixed_NE, ours.attention_norm, sum_ND, theirs.attention_norm)
        up, ours_up = theirs.feedforward.up, ours.feedforward.up
        numbers = top(units_F, ours_up.out_features)
        _fit_linear(ours_up, self.hidden_NE, F.linear(self.goal_ND, up.weight[numbers], up.bias[numbers]))
        units_NF = ours.feedforward.activation(ours_up(self.hidden_NE))
        sum_ND = self.goal_ND + theirs.feedforward(self.goal_ND)
        self._residual(ours.feedforward.down, units_NF, ours.feedforward_norm, sum_ND, theirs.feedforward_norm)

    def _queries_keys_values(self, theirs: Block, ours: Block, heads: Tensor | None) -> None:
        width, qkv = len(self.directions_DE), theirs.attention.qkv
        own = ours.attention.qkv
        if heads is None:
            own.weight.zero_()
            own.bias.zero_()
            own.weight[2 * self.hidden_NE.shape[1] :].copy_(torch.eye(self.hidden_NE.shape[1]))
            return
        dims = expanded(heads, theirs.attention.head_width)
        rows = torch.cat([dims + number * width for number in range(3)])
        _fit_linear(own, self.hidden_NE, F.linear(self.goal_ND, qkv.weight[rows], qkv.bias[rows]))

    def _residual(self, layer: nn.Module, x_NI: Tensor, norm: nn.Module, sum_ND: Tensor, goal_norm: nn.Module) -> None:
        """Fit the last layer of a residual branch, and the norm after it; both networks go on from there."""
        _fit_linear(layer, x_NI, sum_ND @ self.directions_DE - self.hidden_NE)
        sum_NE = self.hidden_NE + layer(x_NI)
        self.goal_ND = goal_norm(sum_ND)
        self.hidden_NE = _fit_norm(norm, sum_NE, self.goal_ND @ self.directions_DE)

    def heads(self) -> None:
        """Project the transforms of heads, and fit their outputs to the logits of the teacher."""
        pooled_BD = pooled_BE = None
        if "pooled" in self.student.heads:
            self._transform(_transform_of(self.teacher), _transform_of(self.student))
            pooled_BD = self.teacher.heads["pooled"](self.goal_ND, self.batch)
            pooled_BE = self.student.heads["pooled"](self.hidden_NE, self.batch)
        for name, ours in self.student.heads.items():
            theirs = self.teacher.heads[name]
            if not isinstance(ours, ClassifierHead) or not isinstance(theirs, ClassifierHead):
                continue
            is_pooled = name in ("sequence", "next")
            goal_ND, hidden_NE = (pooled_BD, pooled_BE) if is_pooled else (self.goal_ND, self.hidden_NE)
            assert goal_ND is not None
            assert hidden_NE is not None
            self._transform(theirs.transform, ours.transform)
            if len(hidden_NE) >= EXAMPLES * hidden_NE.shape[1]:
                _fit_linear(ours.output, ours.transform(hidden_NE), theirs(goal_ND), HEAD_PENALTY)
            else:
                ours.output.weight.copy_(theirs.output.weight @ self.directions_DE)

    def _transform(self, theirs: nn.Module, ours: nn.Module) -> None:
        if not isinstance(theirs, HeadTransform) or not isinstance(ours, HeadTransform):
            return
        directions_DE, mean_D = self.directions_DE, self.goal_ND.mean(0)
        dense = theirs.dense
        ours.dense.weight.copy_(directions_DE.T @ dense.weight @ directions_DE)
        if dense.bias is not None:
            lost_D = mean_D - directions_DE @ (directions_DE.T @ mean_D)
            ours.dense.bias.copy_((dense.bias + dense.weight @ lost_D) @ directions_DE)


def _transform_of(network: Transformer) -> nn.Module:
    """The transform of the pooler."""
    pooler = network.heads["pooled"]
    assert isinstance(pooler, Pooler)
    return pooler.transform
