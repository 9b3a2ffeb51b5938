"""Contrastive training before the linear probe: vectors of texts with the same label become similar.

Few labels make many pairs. For every pair of texts of a batch, the squared difference between the cosine of their
vectors and its target (1 for the same label, 0 for different ones) is minimized. SetFit (Tunstall et al. 2022,
https://arxiv.org/abs/2209.11055) does this with sampled pairs; here all pairs of a batch count, so that few steps are
enough. Pairs of the same label and pairs of different labels have equal weight.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.baselines.ngram import Report
from regard.data.batching.examples import Examples
from regard.model.network import Network
from regard.tasks.classify import Classify
from regard.tasks.inference import network_runner
from regard.text.flat_tokens import Ints
from regard.training.defaults.recipes import ContrastiveTraining
from regard.training.engine.adamw import AdamW, gradients, row_gradients
from regard.training.engine.loop import seed_step
from regard.training.engine.schedule import lr_factor

LEARNING = "contrastive training"  # its name in progress events
WARMUP = 0.1  # of all steps
MAX_GRAD_NORM = 1.0


def train_contrastive(
    network: Network,
    task: Classify,
    examples: Examples,
    training: ContrastiveTraining,
    *,
    seed: int,
    dtype: torch.dtype = torch.float32,
    report: Report | None = None,
) -> None:
    """Train the network so that pooled vectors of texts with the same label are similar. The head is not trained.

    If the training is repeated, each begins from the same weights with other random numbers, and the network gets the
    mean of their weights.
    """
    parameters = [
        parameter
        for name, parameter in network.named_parameters()
        if parameter.requires_grad and not name.startswith("heads.")
    ]
    if not parameters:  # a frozen encoder
        return
    first = [parameter.detach().clone() for parameter in parameters]
    mean = [torch.zeros_like(weight) for weight in first]
    was_training = network.training
    network.train()
    for repeat in range(training.repeats):
        torch._foreach_copy_([parameter.detach() for parameter in parameters], first)

        def done(steps: int, before: int = repeat * training.steps) -> None:
            if report is not None:
                report(LEARNING, before + steps, training.repeats * training.steps)

        with row_gradients(network):
            _train_once(network, task, examples, training, parameters, seed + repeat, dtype, done)
        torch._foreach_add_(mean, [parameter.detach() for parameter in parameters], alpha=1 / training.repeats)
    torch._foreach_copy_([parameter.detach() for parameter in parameters], mean)
    network.train(was_training)


def _train_once(
    network: Network,
    task: Classify,
    examples: Examples,
    training: ContrastiveTraining,
    parameters: list[torch.nn.Parameter],
    seed: int,
    dtype: torch.dtype,
    done: Callable[[int], None],
) -> None:
    device = parameters[0].device
    labels = np.asarray(examples.by_sequence["label"])
    optimizer = AdamW(parameters, lr=training.lr, weight_decay=0.0, fused=True)
    run = network_runner(network, task, dtype=dtype)
    rng = np.random.default_rng(seed)
    for step in range(training.steps):
        seed_step(seed, step, device=device)
        inputs = task.prepare(examples.take(sample_batch(labels, training.texts, rng)).to(device))
        pooled = run(inputs).pooled
        assert pooled is not None
        pair_loss(pooled.float(), inputs["label"]).backward()
        grads = gradients(parameters)
        norm = torch.nn.utils.get_total_norm(grads, foreach=True)
        torch._foreach_mul_(grads, (MAX_GRAD_NORM / (norm + 1e-6)).clamp(max=1.0))
        for group in optimizer.param_groups:
            group["lr"] = training.lr * lr_factor("linear", step, training.steps, WARMUP)
        optimizer.step()
        for parameter in network.parameters():
            parameter.grad = None
        done(step + 1)


def sample_batch(labels: Ints, texts: int, rng: np.random.Generator) -> Ints:
    """Rows of a batch: equally many of each class where possible, two or more of each class that has them.

    There are at least two classes, so at least four rows.
    """
    classes = rng.permutation(np.unique(labels))[: max(2, texts // 2)]
    each = max(2, texts // len(classes))
    parts = []
    for number in classes:
        rows = np.flatnonzero(labels == number)
        parts.append(rng.choice(rows, min(each, len(rows)), replace=False))
    return np.concatenate(parts)


def pair_loss(vectors_BD: Tensor, labels_B: Tensor) -> Tensor:
    """Mean squared error of the cosines of all pairs; half of the weight is on pairs with the same label."""
    unit_BD = F.normalize(vectors_BD, dim=-1)
    cosine_BB = unit_BD @ unit_BD.T
    same_BB = labels_B[:, None] == labels_B[None, :]
    other_BB = ~torch.eye(len(labels_B), dtype=torch.bool, device=labels_B.device)
    positive = (1.0 - cosine_BB[same_BB & other_BB]).square()
    negative = cosine_BB[~same_BB].square()
    parts = [part.mean() for part in (positive, negative) if part.numel()]
    return torch.stack(parts).mean()
