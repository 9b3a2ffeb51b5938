"""Parts that the loss does not depend on have no importance."""

from __future__ import annotations

from typing import Any

import torch

from regard.compression.students.importance import measure_importance
from regard.compression.teacher import Teacher
from regard.model.transformer import Transformer
from regard.training.load_data import LabeledData


def test_importance_of_units_and_heads(teacher: Teacher, labeled: LabeledData) -> None:
    network = teacher.model.network
    assert isinstance(network, Transformer)
    first: Any = network.reader.layers[0]
    with torch.no_grad():
        first.feedforward.down.weight[:, 2] = 0
    importance = measure_importance(network, teacher.task, labeled.train[:40], teacher.model.preprocessing())
    assert importance.units[0][2] == 0
    assert (importance.units[0] > 0).sum() > 10
    assert len(importance.heads) == len(importance.units) == network.config.layers
    assert importance.dimensions.shape == (network.config.width,)
    assert all(weight.grad is None for weight in network.parameters())
