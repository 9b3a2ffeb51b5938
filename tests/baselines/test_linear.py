"""Linear models on sparse features equal those of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse  # type: ignore[import-untyped]
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from regard.baselines.linear import LinearProblem, SparseRows, fit_linear, minimize

EXACT: dict[str, Any] = {"tolerance": 1e-9, "iterations": 2000}


@pytest.fixture
def matrix() -> Any:
    return scipy.sparse.random(200, 40, 0.2, random_state=0, format="csr")


def sparse(matrix: Any) -> SparseRows:
    columns, bounds = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indices, matrix.indptr))
    return SparseRows(columns, bounds, torch.from_numpy(matrix.data), matrix.shape[1])


def noisy(matrix: Any, columns: int) -> Any:
    rng = np.random.default_rng(0)
    return matrix @ rng.normal(size=(40, columns)) + 0.2 * rng.normal(size=(200, columns))


def test_products_are_those_of_a_dense_matrix(matrix: Any) -> None:
    rows, dense = sparse(matrix), torch.from_numpy(matrix.toarray())
    weights = torch.randn(40, 3, dtype=torch.float64)
    torch.testing.assert_close(rows.times(weights), dense @ weights)
    torch.testing.assert_close(rows.transposed.times(dense @ weights), dense.T @ (dense @ weights))
    chosen = np.array([5, 2, 2, 199])
    torch.testing.assert_close(rows.take(chosen).times(weights), dense[chosen] @ weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes(matrix: Any, weighted: bool) -> None:
    labels = (noisy(matrix, 1)[:, 0] > 0.2).astype(int)
    weights = {0: 1.0, 1: 3.0} if weighted else None
    oracle = LogisticRegression(C=3.0, tol=1e-10, max_iter=10_000, class_weight=weights).fit(matrix, labels)
    ones = torch.tensor([3.0], dtype=torch.float64) if weighted else None
    problem = LinearProblem(sparse(matrix), torch.from_numpy(labels)[:, None].double(), "logistic", 1, None, ones)
    fit = fit_linear(problem, 3.0, **EXACT)
    np.testing.assert_allclose(fit.weights[:, 0], oracle.coef_[0], atol=1e-5)
    np.testing.assert_allclose(fit.bias, oracle.intercept_, atol=1e-5)


def test_several_classes(matrix: Any) -> None:
    labels = noisy(matrix, 3).argmax(1)
    oracle = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(matrix, labels)
    fit = fit_linear(LinearProblem(sparse(matrix), torch.from_numpy(labels), "softmax", 3), 2.0, **EXACT)
    np.testing.assert_allclose(fit.weights.T, oracle.coef_, atol=1e-5)


def test_numbers(matrix: Any) -> None:
    numbers = noisy(matrix, 1)[:, 0] + 5
    oracle = Ridge(alpha=0.5).fit(matrix, numbers)
    fit = fit_linear(LinearProblem(sparse(matrix), torch.from_numpy(numbers)[:, None], "squares", 1), 2.0, **EXACT)
    np.testing.assert_allclose(fit.weights[:, 0], oracle.coef_, atol=2e-3)
    np.testing.assert_allclose(fit.bias, oracle.intercept_, atol=2e-3)


def test_a_scale_multiplies_the_features(matrix: Any) -> None:
    labels = noisy(matrix, 3).argmax(1)
    scale = np.random.default_rng(1).uniform(0.5, 2, (40, 1))
    oracle = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(matrix.multiply(scale.T).tocsr(), labels)
    problem = LinearProblem(sparse(matrix), torch.from_numpy(labels), "softmax", 3, torch.from_numpy(scale))
    fit = fit_linear(problem, 2.0, **EXACT)
    np.testing.assert_allclose(fit.weights.T, oracle.coef_ * scale.T, atol=1e-5)
    again = fit_linear(problem, 2.0, start=fit, **EXACT)  # starts where the other one ended
    np.testing.assert_allclose(again.weights, fit.weights, atol=1e-5)


def test_minimize_stops_where_nothing_gets_better() -> None:
    calls: list[int] = []

    def evaluate(x: torch.Tensor) -> tuple[float, torch.Tensor]:
        return float((x - 1).square().sum()), 2 * (x - 1)

    result = minimize(evaluate, torch.zeros(3), iterations=50, tolerance=1e-6, on_iteration=calls.append)
    torch.testing.assert_close(result, torch.ones(3))
    assert len(calls) < 5
    stuck = minimize(lambda x: (float(x.sum() * 0), -torch.ones(2)), torch.zeros(2), iterations=50, tolerance=1e-6)
    assert stuck.tolist() == [0, 0]
