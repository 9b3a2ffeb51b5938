"""Calibration error and temperature scaling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.metrics.calibration import (
    MAX_TEMPERATURE,
    Calibration,
    CalibrationCounts,
    check_temperature,
    fit_confidence_temperature,
    fit_sigmoid_temperature,
    fit_temperature,
    sigmoid,
    softmax,
)


def calibration_of(chances: Any, right: Any) -> Calibration:
    counts = CalibrationCounts()
    for chance, correct in zip(chances, right, strict=True):
        counts.add(float(chance), bool(correct))
    result = counts.result()
    assert result is not None
    return result


def sampled(temperature: float, *, rows: int = 4000, classes: int = 4) -> tuple[Any, Any]:
    """Logits that are `temperature` times too large, and classes that were sampled from the true probabilities."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(rows, classes)) * 2
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    targets = (chances.cumsum(1) > random.random((rows, 1))).argmax(1)
    return logits * temperature, targets


def test_the_error_is_the_mean_gap_of_the_bins_by_hand() -> None:
    result = calibration_of([0.95, 0.95, 0.95, 0.95, 0.55, 0.55], [1, 1, 1, 0, 0, 1])
    assert result.error == pytest.approx((4 * abs(0.95 - 0.75) + 2 * abs(0.55 - 0.5)) / 6)
    assert (result.rows, result.accuracy) == (6, pytest.approx(4 / 6))
    assert [one.rows for one in result.bins] == [2, 4]
    assert result.json()["bins"][1]["accuracy"] == 0.75


def test_probabilities_of_0_and_1_are_in_the_outer_bins_and_others_are_refused() -> None:
    assert [one.rows for one in calibration_of([0.0, 1.0, 1.0], [0, 1, 1]).bins] == [1, 2]
    assert CalibrationCounts().result() is None
    for wrong in (-0.1, 1.5, math.nan):
        with pytest.raises(InputError, match="from 0 to 1"):
            CalibrationCounts().add(wrong, True)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5])
def test_the_temperature_of_sampled_classes_is_recovered(temperature: float) -> None:
    logits, targets = sampled(temperature)
    assert fit_temperature(logits, targets) == pytest.approx(temperature, rel=0.08)


def test_the_temperature_has_the_lowest_loss_and_the_error_falls() -> None:
    logits, targets = sampled(3.0)
    best = fit_temperature(logits, targets)

    def chances(temperature: float) -> Any:
        parts = np.exp(logits / temperature)
        return parts / parts.sum(1, keepdims=True)

    losses = [-np.log(chances(best * factor)[np.arange(len(targets)), targets]).mean() for factor in (0.95, 1, 1.05)]
    assert losses[1] == min(losses)
    errors = []
    for temperature in (1.0, best):
        top = chances(temperature)
        errors.append(calibration_of(top.max(1), top.argmax(1) == targets).error)
    assert errors[1] < errors[0] / 4


def test_a_few_right_answers_do_not_make_a_model_certain() -> None:
    """Thirty rows that are all right: the best temperature without smoothing would be 0."""
    targets = np.array([0, 1, 2] * 10)
    temperature = fit_temperature(np.eye(3)[targets] * 2, targets)
    parts = np.exp(np.array([2, 0, 0]) / temperature)
    assert 0.9 < parts[0] / parts.sum() < 0.98
    assert fit_temperature(np.zeros((4, 2)), [0, 1, 0, 1]) == 1
    assert fit_temperature(np.eye(2)[[0, 1] * 50] * 5, [1, 0] * 50) == pytest.approx(MAX_TEMPERATURE, rel=0.01)


def test_labels_that_do_not_exclude_each_other_have_one_temperature() -> None:
    random = np.random.default_rng(1)
    logits = random.normal(size=(3000, 5)) * 2 - 1
    targets = random.random(logits.shape) < 1 / (1 + np.exp(-logits))
    assert fit_sigmoid_temperature(logits * 2, targets) == pytest.approx(2, rel=0.08)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_temperature_of_answers_says_how_often_they_are_right(temperature: float) -> None:
    """Also where a right answer is none of the candidates."""
    random = np.random.default_rng(2)
    gaps = -np.abs(random.normal(size=(4000, 6))) * 3
    gaps[:, 0] = 0
    right = random.random(4000) < 1 / np.exp(gaps).sum(1)
    rows = zip((gaps * temperature).tolist(), right.tolist(), strict=True)
    assert fit_confidence_temperature(rows) == pytest.approx(temperature, rel=0.1)
    assert fit_confidence_temperature([]) == 1
    assert fit_confidence_temperature([([0.0], True)] * 40) > 0  # one candidate is certain at any temperature


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_a_temperature_is_above_zero(temperature: float) -> None:
    with pytest.raises(InputError, match="the temperature is"):
        check_temperature(temperature)


@pytest.mark.parametrize("logits", [[0.0], [3.0, -2.0, 700.0, -800.0], [1e-3, 0.5, 0.5], [-1e4, -1e4]])
def test_probabilities_are_those_of_torch(logits: list[float]) -> None:
    exact = torch.tensor(logits, dtype=torch.float64)
    assert softmax(logits) == pytest.approx(exact.softmax(0).tolist(), rel=1e-12)
    assert [sigmoid(logit) for logit in logits] == pytest.approx(exact.sigmoid().tolist(), rel=1e-12)
