"""A linear probe: the best linear classifier on the vectors of a network whose weights stay as they are.

A training that starts with this classifier as its head (LP-FT, Kumar et al. 2022, https://arxiv.org/abs/2202.10054)
changes the network less and needs fewer labels than one that starts with a random head.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batching.examples import Examples
from regard.data.batching.packing import Ints
from regard.data.batching.sequences import token_batches
from regard.model.kernels.dispatch import without_tiles
from regard.model.network import Network
from regard.tasks.classify import Classify
from regard.tasks.inference import RowSource, network_runner
from regard.training.engine.optimizer import LBFGS

MAX_ROWS = 4096  # rows that the probe is fitted on; more hardly change it
MIN_CLASS_ROWS = 16  # of each class, if it has so many
BATCH_TOKENS = 8192
STRENGTH = 10.0  # inverse of the L2 penalty, for vectors of mean length 1, as C of scikit-learn
ITERATIONS = 200


def start_from_probe(
    network: Network, task: Classify, examples: Examples, *, seed: int, dtype: torch.dtype = torch.float32
) -> int:
    """Fit a linear probe to the pooled vectors and make it the head of the network. Returns the number of rows."""
    rows = probe_rows(task, examples, seed)
    vectors, labels, weights = pooled_vectors(network, task, examples, rows.tolist(), dtype=dtype)
    weight, bias = fit_probe(task, vectors, labels, weights)
    head = network.heads["sequence"].output
    assert isinstance(head, nn.Linear)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
    return len(rows)


def probe_rows(task: Classify, examples: Examples, seed: int) -> Ints:
    """All rows, or a random sample of many, with some rows of each class: a class without a row would be ruled out."""
    order = np.random.default_rng(seed).permutation(len(examples.lengths))
    chosen = [order[:MAX_ROWS]]
    if len(order) > MAX_ROWS and task.kind != "number":
        labels = np.asarray(examples.by_sequence["label"])[order]
        for number in range(len(task.names)):
            has_class = labels == number if task.kind == "single" else labels[:, number] > 0
            chosen.append(order[has_class][:MIN_CLASS_ROWS])
    rows: Ints = np.unique(np.concatenate(chosen))
    return rows


@torch.no_grad()
def pooled_vectors(
    network: Network, task: Classify, source: RowSource, rows: list[int], *, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    """The pooled vectors of these rows with their labels and weights, on the CPU, in float64."""
    device = next(network.parameters()).device
    run = network_runner(network, task, dtype=dtype)
    was_training = network.training
    network.eval()
    parts = []
    for batch in token_batches([int(source.lengths[row]) for row in rows], BATCH_TOKENS):
        inputs = task.prepare(source.take(np.array([rows[number] for number in batch], np.int64)).to(device))
        with without_tiles():
            pooled = run(inputs).pooled
        assert pooled is not None
        parts.append([value.detach().cpu() for value in (pooled, inputs["label"], inputs["weight"])])
    network.train(was_training)
    vectors, labels, weights = (torch.cat(values) for values in zip(*parts, strict=True))
    return vectors.double(), labels if task.kind == "single" else labels.double(), weights.double()


def fit_probe(task: Classify, vectors_ND: Tensor, labels: Tensor, weights_N: Tensor) -> tuple[Tensor, Tensor]:
    """(C, D) weight and (C,) bias of logistic regression, or of ridge regression for numbers.

    The vectors are scaled to a mean length of 1, so that the penalty does not depend on their scale. Logistic
    regression is fitted with L-BFGS; its loss is convex, so the result does not depend on where it starts.
    """
    scale = float(vectors_ND.norm(dim=1).mean().clamp(min=1e-12))
    x_ND = vectors_ND / scale
    if task.kind == "number":
        weight, bias = _ridge(x_ND, labels, weights_N)
    else:
        weight, bias = _logistic(task, x_ND, labels, weights_N)
    return (weight / scale).float(), bias.float()


def _logistic(task: Classify, x_ND: Tensor, labels: Tensor, weights_N: Tensor) -> tuple[Tensor, Tensor]:
    classes = len(task.names)
    weight = torch.zeros(classes, x_ND.shape[1], dtype=x_ND.dtype, requires_grad=True)
    bias = torch.zeros(classes, dtype=x_ND.dtype, requires_grad=True)
    class_weights = None if task.weights is None else torch.tensor(task.weights, dtype=x_ND.dtype)
    optimizer = LBFGS([weight, bias], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        logits_NC = F.linear(x_ND, weight, bias)
        if task.kind == "single":
            losses_N = F.cross_entropy(logits_NC, labels, weight=class_weights, reduction="none")
        else:
            losses_N = F.binary_cross_entropy_with_logits(
                logits_NC, labels, pos_weight=class_weights, reduction="none"
            ).sum(1)
        total = (losses_N * weights_N).sum() + weight.square().sum() / (2 * STRENGTH)
        total.backward()
        return float(total.detach())

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


def _ridge(x_ND: Tensor, labels_N: Tensor, weights_N: Tensor) -> tuple[Tensor, Tensor]:
    """Least squares with an L2 penalty on the weight, not on the bias; closed form."""
    total = weights_N.sum()
    mean_D = (x_ND * weights_N[:, None]).sum(0) / total
    mean = (labels_N * weights_N).sum() / total
    centered_ND = x_ND - mean_D
    gram_DD = centered_ND.T @ (centered_ND * weights_N[:, None])
    gram_DD += torch.eye(len(gram_DD), dtype=gram_DD.dtype) / STRENGTH
    weight_D = torch.linalg.solve(gram_DD, centered_ND.T @ ((labels_N - mean) * weights_N))
    return weight_D[None], (mean - mean_D @ weight_D)[None]
