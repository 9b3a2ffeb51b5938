"""A linear probe: the best linear classifier on the vectors of a network whose weights stay as they are.

A training that starts with this classifier as its head (LP-FT, Kumar et al. 2022, https://arxiv.org/abs/2202.10054)
changes the network less and needs fewer labels than one that starts with a random head.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.baselines.ngram import Report
from regard.data.batching.examples import Examples
from regard.data.batching.sequences import token_batches
from regard.model.kernels.dispatch import without_tiles
from regard.model.network import Network
from regard.tasks.classify import Classify
from regard.tasks.inference import RowSource, network_runner
from regard.text.flat_tokens import Ints
from regard.training.engine.optimizer import LBFGS

MAX_ROWS = 4096  # rows that the probe is fitted on; more hardly change it
MIN_CLASS_ROWS = 16  # of each class, if it has so many
BATCH_TOKENS = 8192
STRENGTH = 10.0  # inverse of the L2 penalty, for vectors of mean length 1, as C of scikit-learn
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # of which one is chosen on request
FEW_ROWS = 200  # up to which none is chosen
ITERATIONS = 200


def start_from_probe(
    network: Network,
    task: Classify,
    examples: Examples,
    *,
    seed: int,
    dtype: torch.dtype = torch.float32,
    max_rows: int | None = None,
    strength: float | None = STRENGTH,
    report: Report | None = None,
) -> int:
    """Fit a linear probe to the pooled vectors and make it the head of the network. Returns the number of rows.

    strength: inverse of the L2 penalty; if None, chosen by the loss on a held-out part of the rows.
    """
    rows = probe_rows(task, examples, seed, max_rows)
    vectors, labels, weights = pooled_vectors(network, task, examples, rows.tolist(), dtype=dtype, report=report)
    if strength is None:
        strength = choose_probe_strength(task, vectors, labels, weights, seed=seed)
    weight, bias = fit_probe(task, vectors, labels, weights, strength=strength)
    head = network.heads["sequence"].output
    assert isinstance(head, nn.Linear)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
    return len(rows)


def choose_probe_strength(task: Classify, vectors_ND: Tensor, labels: Tensor, weights_N: Tensor, *, seed: int) -> float:
    """The strength with the lowest loss on a fifth of the rows; the default one if there are few."""
    count = len(vectors_ND)
    if count < FEW_ROWS:
        return STRENGTH
    order = torch.from_numpy(np.random.default_rng(seed).permutation(count))
    test, part = order[: count // 5], order[count // 5 :]
    losses = {}
    for strength in STRENGTHS:
        weight, bias = fit_probe(task, vectors_ND[part], labels[part], weights_N[part], strength=strength)
        logits = F.linear(vectors_ND[test], weight.double(), bias.double())
        losses[strength] = float((_losses(task, logits, labels[test]) * weights_N[test]).sum())
    return min(losses, key=losses.__getitem__)


def probe_rows(task: Classify, examples: Examples, seed: int, max_rows: int | None = None) -> Ints:
    """All rows, or a random sample of many, with some rows of each class: a class without a row would be ruled out."""
    order = np.random.default_rng(seed).permutation(len(examples.lengths))
    max_rows = MAX_ROWS if max_rows is None else max_rows
    chosen = [order[:max_rows]]
    if len(order) > max_rows and task.kind != "number":
        labels = np.asarray(examples.by_sequence["label"])[order]
        for number in range(len(task.names)):
            has_class = labels == number if task.kind == "single" else labels[:, number] > 0
            chosen.append(order[has_class][:MIN_CLASS_ROWS])
    rows: Ints = np.unique(np.concatenate(chosen))
    return rows


@torch.no_grad()
def pooled_vectors(
    network: Network,
    task: Classify,
    source: RowSource,
    rows: list[int],
    *,
    dtype: torch.dtype = torch.float32,
    report: Report | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The pooled vectors of these rows with their labels and weights, on the CPU, in float64."""
    device = next(network.parameters()).device
    run = network_runner(network, task, dtype=dtype)
    was_training = network.training
    network.eval()
    parts: list[list[Tensor]] = []
    done = 0
    for batch in token_batches([int(source.lengths[row]) for row in rows], BATCH_TOKENS):
        inputs = task.prepare(source.take(np.array([rows[number] for number in batch], np.int64)).to(device))
        with without_tiles():
            pooled = run(inputs).pooled
        assert pooled is not None
        parts.append([value.detach().cpu() for value in (pooled, inputs["label"], inputs["weight"])])
        done += len(batch)
        if report is not None:
            report("computing vectors", done, len(rows))
    network.train(was_training)
    vectors, labels, weights = (torch.cat(values) for values in zip(*parts, strict=True))
    return vectors.double(), labels if task.kind == "single" else labels.double(), weights.double()


def fit_probe(
    task: Classify, vectors_ND: Tensor, labels: Tensor, weights_N: Tensor, *, strength: float = STRENGTH
) -> tuple[Tensor, Tensor]:
    """(C, D) weight and (C,) bias of logistic regression, or of ridge regression for numbers.

    The vectors are scaled to a mean length of 1, so that the penalty does not depend on their scale. Logistic
    regression is fitted with L-BFGS; its loss is convex, so the result does not depend on where it starts.
    """
    scale = float(vectors_ND.norm(dim=1).mean().clamp(min=1e-12))
    x_ND = vectors_ND / scale
    if task.kind == "number":
        weight, bias = _ridge(x_ND, labels, weights_N, strength)
    else:
        weight, bias = _logistic(task, x_ND, labels, weights_N, strength)
    return (weight / scale).float(), bias.float()


def _losses(task: Classify, logits_NC: Tensor, labels: Tensor) -> Tensor:
    """(N,) the loss of each row, with class weights."""
    if task.kind == "number":
        return (logits_NC.squeeze(1) - labels).square()
    class_weights = None if task.weights is None else torch.tensor(task.weights, dtype=logits_NC.dtype)
    if task.kind == "single":
        return F.cross_entropy(logits_NC, labels, weight=class_weights, reduction="none")
    return F.binary_cross_entropy_with_logits(logits_NC, labels, pos_weight=class_weights, reduction="none").sum(1)


def _logistic(
    task: Classify, x_ND: Tensor, labels: Tensor, weights_N: Tensor, strength: float
) -> tuple[Tensor, Tensor]:
    classes = len(task.names)
    weight = torch.zeros(classes, x_ND.shape[1], dtype=x_ND.dtype, requires_grad=True)
    bias = torch.zeros(classes, dtype=x_ND.dtype, requires_grad=True)
    optimizer = LBFGS([weight, bias], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        losses_N = _losses(task, F.linear(x_ND, weight, bias), labels)
        total = (losses_N * weights_N).sum() + weight.square().sum() / (2 * strength)
        total.backward()
        return float(total.detach())

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


def _ridge(x_ND: Tensor, labels_N: Tensor, weights_N: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """Least squares with an L2 penalty on the weight, not on the bias; closed form."""
    total = weights_N.sum()
    mean_D = (x_ND * weights_N[:, None]).sum(0) / total
    mean = (labels_N * weights_N).sum() / total
    centered_ND = x_ND - mean_D
    gram_DD = centered_ND.T @ (centered_ND * weights_N[:, None])
    gram_DD += torch.eye(len(gram_DD), dtype=gram_DD.dtype) / strength
    weight_D = torch.linalg.solve(gram_DD, centered_ND.T @ ((labels_N - mean) * weights_N))
    return weight_D[None], (mean - mean_D @ weight_D)[None]
