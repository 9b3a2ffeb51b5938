"""Distillation: a student learns from the answers, and optionally from the layers, of a teacher.

In plain terms, the loss works as follows:

1. Soft targets (Hinton et al. 2015, https://arxiv.org/abs/1503.02531): the student's probabilities should be those of
   the teacher, both softened by a temperature. The Kullback-Leibler divergence is multiplied by the squared
   temperature, so that its gradient is as large as that of the labels. Where a task predicts no classes, the logits
   should be equal (squared difference).
2. The loss of the labels counts too, with the rest of the weight.
3. Hidden states (TinyBERT, Jiao et al. 2020): after the matched layers they should be those of the teacher, relative to
   their size. For students of the teacher's width.

The teacher is loaded above and handed in. Its soft targets are computed before the training; its layers run beside
those of the student.

Shapes: N positions, C classes, D width.
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
from regard.model.kernels.dispatch import without_tiles
from regard.model.network import Network
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged
from regard.tasks.task import Loss, Task

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
        self.student_layers = _watched(student, distillation.layers.keys())
        self.teacher_layers = _watched(self.teacher, distillation.layers.values())

    def loss(self, batch: Ragged, dtype: torch.dtype = torch.float32) -> Tensor:
        """The differences after the student has read the batch; the teacher reads it here, in `dtype`."""
        ids = self.distillation.token_ids
        half = torch.autocast(batch.ids.device.type, dtype, enabled=dtype != torch.float32)
        with torch.no_grad(), half, without_tiles():
            self.teacher.read(batch if ids is None else replace(batch, ids=ids.to(batch.ids.device)[batch.ids]))
        total = torch.zeros((), device=batch.ids.device)
        for ours, theirs in self.distillation.layers.items():
            hidden_ND, goal_ND = self.student_layers[ours], self.teacher_layers[theirs]
            difference = (hidden_ND.float() - goal_ND.float()).square().mean()
            total = total + difference / goal_ND.float().square().mean()
        return total


def _watched(network: Transformer, layers: Iterable[int]) -> dict[int, Tensor]:
    """The hidden states of some blocks in the latest forward pass, by block."""
    hidden: dict[int, Tensor] = {}
    for layer in set(layers):
        _watch(network.reader.layers[layer], hidden, layer)
    return hidden


def _watch(module: nn.Module, target: dict[int, Tensor], layer: int) -> None:
    def note(_: nn.Module, __: object, output: Tensor) -> None:
        target[layer] = output.flatten(1)

    module.register_forward_hook(note)
