"""Distillation: a student learns from the answers, and optionally from the layers, of a teacher.

In plain terms, the loss works as follows:

1. Soft targets (Hinton et al. 2015, https://arxiv.org/abs/1503.02531): the student's probabilities should be those of
   the teacher, both softened by a temperature. The Kullback-Leibler divergence is multiplied by the squared
   temperature, so that its gradient is as large as that of the labels. Where a task predicts no classes, the logits
   should be equal (squared difference).
2. The loss of the labels counts too, with the rest of the weight.
3. Hidden states (TinyBERT, Jiao et al. 2020): after the matched layers they should be those of the teacher, relative to
   their size. For students of the teacher's width.
4. Relations between values (MiniLM, Wang et al. 2020): the products of the values of all tokens, as probabilities,
   should be those of the teacher. Widths and heads may differ.

The teacher is loaded above and handed in. Its soft targets are computed before the training; its layers run beside
those of the student.

Shapes: N positions, C classes, B sequences of T tokens, D width, R relation heads, K their width.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batching.examples import TEACHER, Examples, Inputs
from regard.data.records import Record
from regard.model.block import Block
from regard.model.kernels.dispatch import without_tiles
from regard.model.network import Network
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged
from regard.tasks.task import Loss, Task

RELATION_HEADS = 12  # at most; both widths are a multiple of their number
MASKED = -1e9  # score of a key that is padding

SoftTargets = Callable[[Task, Examples, Sequence[Record]], Examples]
"""Adds the teacher's answers to the examples of records: log-probabilities or logits, by the name `TEACHER`."""


@dataclass(frozen=True, eq=False)
class Distillation:
    """A teacher for a training.

    layers: blocks of the student, each with the teacher's block that it should resemble, both counted from 0.
    identity: the same for the same teacher; a resumed training must have it.
    """

    soft_targets: SoftTargets
    identity: str
    temperature: float = 2.0
    weight: float = 0.8  # of the soft targets; the labels have the rest
    network: Transformer | None = None  # the teacher's, for its layers
    layers: Mapping[int, int] = field(default_factory=dict)
    hidden_weight: float = 0.0
    relation_weight: float = 0.0
    token_ids: Tensor | None = None  # the teacher's id of each id of the student, where they differ

    @property
    def fits_recorded_steps(self) -> bool:
        """Whether steps can be recorded as CUDA graphs: the hooks on the teacher's layers need plain steps."""
        return self.network is None


def distillation_loss(task: Task, output: Output, inputs: Inputs, distillation: Distillation) -> Loss:
    """The loss of the labels and of the soft targets of a batch."""
    loss = task.loss(output, inputs)
    if TEACHER not in inputs:
        return loss
    weight = distillation.weight
    targets = inputs[TEACHER]
    if inputs.at is not None and TEACHER in inputs.by_token:
        targets = targets.index_select(0, inputs.at)
    if task.predicts_classes:
        log_NC, weight_N = task.log_probabilities(output, inputs)
        soft_N = soft_divergence(log_NC, targets.reshape(log_NC.shape), distillation.temperature)
        soft = torch.where(weight_N > 0, soft_N * weight_N, 0.0).sum()
    else:
        assert output.logits is not None
        teacher = targets.reshape(output.logits.shape)
        squares = (output.logits.float() - teacher.nan_to_num()).square()
        soft = squares[~teacher.isnan()].mean() * loss.count
    return Loss((1 - weight) * loss.sum + weight * soft, loss.count)


def soft_divergence(log_p_NC: Tensor, teacher_log_NC: Tensor, temperature: float) -> Tensor:
    """(N,) KL(teacher, student) at a temperature, times its square; from log-probabilities."""
    student_NC = (log_p_NC / temperature).log_softmax(-1)
    teacher_NC = (teacher_log_NC.nan_to_num(neginf=-1e4) / temperature).log_softmax(-1)
    return F.kl_div(student_NC, teacher_NC, reduction="none", log_target=True).sum(-1) * temperature**2


class LayerMatcher:
    """Compares layers of student and teacher on the same batch."""

    def __init__(self, student: Network, distillation: Distillation) -> None:
        assert isinstance(student, Transformer)
        assert distillation.network is not None
        self.distillation = distillation
        device = next(student.parameters()).device
        self.teacher = copy.deepcopy(distillation.network).to(device).eval().requires_grad_(False)
        self.student_layers = _Watched(student, distillation.layers.keys())
        self.teacher_layers = _Watched(self.teacher, distillation.layers.values())

    def loss(self, batch: Ragged, dtype: torch.dtype = torch.float32) -> Tensor:
        """The differences after the student has read the batch; the teacher reads it here, in `dtype`."""
        ids = self.distillation.token_ids
        half = torch.autocast(batch.ids.device.type, dtype, enabled=dtype != torch.float32)
        with torch.no_grad(), half, without_tiles():
            self.teacher.read(batch if ids is None else replace(batch, ids=ids.to(batch.ids.device)[batch.ids]))
        total = torch.zeros((), device=batch.ids.device)
        settings = self.distillation
        for ours, theirs in settings.layers.items():
            if settings.hidden_weight:
                hidden_ND, goal_ND = self.student_layers.hidden[ours], self.teacher_layers.hidden[theirs]
                difference = (hidden_ND.float() - goal_ND.float()).square().mean()
                total = total + settings.hidden_weight * difference / goal_ND.float().square().mean()
            if settings.relation_weight:
                ours_ND, theirs_ND = self.student_layers.values[ours], self.teacher_layers.values[theirs]
                total = total + settings.relation_weight * relation_loss(ours_ND, theirs_ND, batch)
        return total


class _Watched:
    """The hidden states and the values of some blocks in the latest forward pass."""

    def __init__(self, network: Transformer, layers: Iterable[int]) -> None:
        self.hidden: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}
        for layer in set(layers):
            block = network.reader.layers[layer]
            assert isinstance(block, Block)
            _watch(block, self.hidden, layer)
            _watch(block.attention.v, self.values, layer)


def _watch(module: nn.Module, target: dict[int, Tensor], layer: int) -> None:
    def note(_: nn.Module, __: object, output: Tensor) -> None:
        target[layer] = output.flatten(1)

    module.register_forward_hook(note)


def relation_loss(values_ND: Tensor, teacher_ND: Tensor, batch: Ragged) -> Tensor:
    """The mean divergence between the value relations of student and teacher, over sequences, tokens and heads.

    The sequences are padded here: their lengths are on the device, and reading them would wait for it.
    """
    place_T = torch.arange(batch.max_length, device=batch.bounds.device)
    starts_B, ends_B = batch.bounds[:-1].long(), batch.bounds[1:].long()
    index_BT = starts_B.unsqueeze(1) + place_T
    mask_BT = index_BT < ends_B.unsqueeze(1)
    index_BT = index_BT.clamp(max=max(batch.tokens - 1, 0))
    widths = values_ND.shape[1], teacher_ND.shape[1]
    heads = max(count for count in range(1, RELATION_HEADS + 1) if not any(width % count for width in widths))
    student_BRTT, teacher_BRTT = (_relations(x_ND[index_BT], mask_BT, heads) for x_ND in (values_ND, teacher_ND))
    terms_BRTT = F.kl_div(student_BRTT, teacher_BRTT, reduction="none", log_target=True)
    divergence_BRT = terms_BRTT.masked_fill(~mask_BT[:, None, None, :], 0).sum(-1)
    sums_B = divergence_BRT.mean(1).masked_fill(~mask_BT, 0).sum(1)
    lengths_B = (ends_B - starts_B).clamp(min=1)
    return (sums_B / lengths_B).sum() / len(batch)


def _relations(values_BTD: Tensor, mask_BT: Tensor, heads: int) -> Tensor:
    """(B, R, T, T) log-probabilities of the products between the values of all tokens."""
    x_BRTK = values_BTD.float().unflatten(2, (heads, -1)).transpose(1, 2)
    scores_BRTT: Tensor = x_BRTK @ x_BRTK.transpose(2, 3) / x_BRTK.shape[-1] ** 0.5
    return scores_BRTT.masked_fill(~mask_BT[:, None, None, :], MASKED).log_softmax(-1)
