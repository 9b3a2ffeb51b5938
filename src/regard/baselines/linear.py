"""Linear models on sparse features: logistic and ridge regression with an L2 penalty, fitted with L-BFGS.

The objectives are those of scikit-learn: the sum of the losses plus ||w||² / (2 C), without a penalty on the bias.

Shapes: N rows, V features, C columns (classes; one for two classes and for numbers).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.text.flat_tokens import Ints, ranges

HISTORY = 10  # of L-BFGS
ITERATIONS = 200
BACKTRACKS = 30
TOLERANCE = 1e-4  # of the gradient, relative to that of zero weights


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix by rows: the columns and values of row r are at `bounds[r]` to `bounds[r + 1]`."""

    columns: Tensor  # int64
    bounds: Tensor  # int64, one more than rows
    values: Tensor  # float
    width: int

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def times(self, weights_VC: Tensor) -> Tensor:
        """(N, C) the product with a dense matrix."""
        return F.embedding_bag(
            self.columns,
            weights_VC,
            self.bounds,
            mode="sum",
            per_sample_weights=self.values,
            include_last_offset=True,
        )

    @cached_property
    def transposed(self) -> SparseRows:
        """The same matrix by columns."""
        order = torch.argsort(self.columns, stable=True)
        rows = torch.repeat_interleave(torch.arange(len(self)), self.bounds.diff())
        counts = torch.bincount(self.columns, minlength=self.width)
        bounds = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
        return SparseRows(rows[order], bounds, self.values[order], len(self))

    def take(self, rows: Ints) -> SparseRows:
        """Some of the rows."""
        bounds = self.bounds.numpy()
        lengths = np.diff(bounds)[rows]
        flat = torch.from_numpy(ranges(bounds[rows], lengths))
        ends = torch.from_numpy(np.concatenate(([0], np.cumsum(lengths))))
        return SparseRows(self.columns[flat], ends, self.values[flat], self.width)


class LinearFit(NamedTuple):
    """(V, C) weights and (C,) bias."""

    weights: Tensor
    bias: Tensor


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """What is fitted: `losses` are "softmax" (targets: classes), "logistic" (0 or 1 per column) or "squares".

    scale: (V, C) or (V, 1) factors of the weights: the penalty is on the weights before they are multiplied, so that
        features with a large factor are penalized less (NB-SVM, Wang and Manning 2012).
    class_weights: of softmax the weight of each class, of logistic that of ones.
    """

    rows: SparseRows
    targets: Tensor
    losses: str
    columns: int
    scale: Tensor | None = None
    class_weights: Tensor | None = None

    def take(self, rows: Ints) -> LinearProblem:
        """The same problem on some of the rows."""
        return replace(self, rows=self.rows.take(rows), targets=self.targets[torch.from_numpy(rows)])

    def scores(self, fit: LinearFit) -> Tensor:
        """(N, C) logits."""
        return self.rows.times(fit.weights) + fit.bias

    def loss(self, logits_NC: Tensor) -> Tensor:
        """The sum of the losses of all rows."""
        if self.losses == "softmax":
            return F.cross_entropy(logits_NC, self.targets, weight=self.class_weights, reduction="sum")
        if self.losses == "logistic":
            return F.binary_cross_entropy_with_logits(
                logits_NC, self.targets, pos_weight=self.class_weights, reduction="sum"
            )
        return (logits_NC - self.targets).square().sum() / 2


OnIteration = Callable[[int], None]


def fit_linear(
    problem: LinearProblem,
    strength: float,
    *,
    start: LinearFit | None = None,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    on_iteration: OnIteration | None = None,
) -> LinearFit:
    """The weights with the smallest sum of losses and penalty. `strength` is C of scikit-learn."""
    rows, columns, scale = problem.rows, problem.columns, problem.scale
    shape = (rows.width + 1, columns)  # the bias is the last row
    initial = torch.zeros(shape, dtype=rows.values.dtype)
    if start is not None:
        initial[:-1] = start.weights if scale is None else start.weights / scale.clamp(min=1e-12)
        initial[-1] = start.bias

    def evaluate(flat: Tensor) -> tuple[float, Tensor]:
        weights, bias = flat.view(shape)[:-1], flat.view(shape)[-1]
        logits = (rows.times(weights if scale is None else weights * scale) + bias).requires_grad_()
        with torch.enable_grad():
            loss = problem.loss(logits)
            (slope,) = torch.autograd.grad(loss, logits)
        gradient = torch.empty(shape, dtype=flat.dtype)
        gradient[:-1] = rows.transposed.times(slope)
        if scale is not None:
            gradient[:-1] *= scale
        gradient[:-1] += weights / strength
        gradient[-1] = slope.sum(0)
        return float(loss.detach()) + float(weights.square().sum()) / (2 * strength), gradient.flatten()

    with torch.no_grad():
        flat = minimize(
            evaluate, initial.flatten(), iterations=iterations, tolerance=tolerance, on_iteration=on_iteration
        ).view(shape)
    return LinearFit(flat[:-1] if scale is None else flat[:-1] * scale, flat[-1])


def minimize(
    evaluate: Callable[[Tensor], tuple[float, Tensor]],
    x: Tensor,
    *,
    iterations: int,
    tolerance: float,
    on_iteration: OnIteration | None = None,
) -> Tensor:
    """L-BFGS (Liu and Nocedal 1989) with backtracking, for convex functions that return their value and gradient.

    It stops when the gradient is `tolerance` times that of zero, or no step makes the value smaller.
    """
    value, gradient = evaluate(x)
    at_zero = gradient if not bool(x.any()) else evaluate(torch.zeros_like(x))[1]
    small = tolerance * float(at_zero.norm())
    steps: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=HISTORY)
    for iteration in range(iterations):
        if float(gradient.norm()) <= small:
            break
        direction = _direction(gradient, steps)
        slope = float(gradient @ direction)
        size = 1.0 if steps else min(1.0, 1.0 / float(gradient.norm()))
        for _ in range(BACKTRACKS):
            new_value, new_gradient = evaluate(x + size * direction)
            if new_value <= value + 1e-4 * size * slope:
                break
            size /= 2
        else:
            break
        moved, change = size * direction, new_gradient - gradient
        curvature = float(moved @ change)
        if curvature > 1e-12 * float(change @ change):
            steps.append((moved, change, curvature))
        x, value, gradient = x + moved, new_value, new_gradient
        if on_iteration is not None:
            on_iteration(iteration + 1)
    return x


def _direction(gradient: Tensor, steps: Sequence[tuple[Tensor, Tensor, float]]) -> Tensor:
    """The gradient times the approximate inverse of the Hessian, negated (the two-loop recursion)."""
    direction = -gradient
    factors = []
    for moved, change, curvature in reversed(steps):
        factor = float(moved @ direction) / curvature
        direction = direction - factor * change
        factors.append(factor)
    if steps:
        _, change, curvature = steps[-1]
        direction = direction * (curvature / float(change @ change))
    for (moved, change, curvature), factor in zip(steps, reversed(factors), strict=True):
        direction = direction + moved * (factor - float(change @ direction) / curvature)
    return direction
