"""R-Drop: the divergence by hand, nothing without dropout, and the same in parts and recorded."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.engine.test_stepper import TASK, batch, new_network
from tests.training.helpers import Digest, Train

from regard.data.batching.examples import Inputs
from regard.errors import InputError
from regard.model.transformer import Output
from regard.tasks.classify import Classify
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine.optimizer import build_optimizer
from regard.training.engine.rdrop import check_rdrop, rdrop_loss, symmetric_kl
from regard.training.engine.stepper import Stepper
from regard.training.settings import Settings


def stepper(dropout: float, rdrop: float) -> Stepper:
    network = new_network(dropout)
    made = Stepper(network, TASK, build_optimizer(network, fill_from_recipe(Settings()), lr=0.01), clip=0.0)
    made.set_rdrop(rdrop)
    return made


def test_symmetric_kl_by_hand() -> None:
    p, q = (0.5, 0.5), (0.9, 0.1)
    forward = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    backward = sum(b * math.log(b / a) for a, b in zip(p, q, strict=True))
    found = symmetric_kl(torch.tensor([p, p]).log(), torch.tensor([q, p]).log())
    assert found.tolist() == pytest.approx([(forward + backward) / 2, 0.0])


@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 0.5)])
def test_loss_is_the_mean_of_both_passes_and_the_divergence(weights: tuple[float, ...] | None) -> None:
    task, inputs = replace(TASK, weights=weights), batch([3, 2])
    one, two = torch.randn(2, 3), torch.randn(2, 3)
    losses = [task.loss(Output(one, logits), inputs) for logits in (one, two)]
    mean = sum(float(loss.sum / loss.count) for loss in losses) / 2
    _, weight = task.log_probabilities(Output(one, one), inputs)
    assert float(weight.sum()) == pytest.approx(float(losses[0].count))
    divergence = [
        float(
            torch.nn.functional.kl_div(a.log_softmax(1), b.log_softmax(1), log_target=True, reduction="none").sum(1)
            @ weight
        )
        for a, b in ((one, two), (two, one))
    ]
    both = torch.cat((one, two))
    loss = rdrop_loss(task, Output(both, both), inputs.twice(), 2.5)
    expected = mean + 2.5 * sum(divergence) / 2 / float(weight.sum())
    assert float(loss.sum / loss.count) == pytest.approx(expected, rel=1e-5)


def test_without_dropout_the_step_is_the_plain_one() -> None:
    inputs = batch([9, 5, 3])
    plain, twice = stepper(0.0, 0.0), stepper(0.0, 3.0)
    plain.part(inputs)
    twice.part(inputs.twice())
    for made in (plain, twice):
        made.update()
    torch.testing.assert_close(plain.numbers[[0, 2]], twice.numbers[[0, 2]], rtol=1e-5, atol=1e-6)
    for one, other in zip(plain.network.parameters(), twice.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_dropout_makes_the_two_passes_differ() -> None:
    inputs, losses = batch([9, 5, 3]), []
    for weight in (1e-9, 100.0):
        torch.manual_seed(0)
        made = stepper(0.3, weight)
        made.part(inputs.twice())
        made.update()
        losses.append(float(made.numbers[0]))
    assert losses[1] > losses[0] + 1e-4


def test_micro_batches_add_up() -> None:
    """Both passes of a sequence are in the same part."""
    whole, parts = stepper(0.0, 1.0), stepper(0.0, 1.0)
    inputs = batch([9, 5, 3, 2])
    whole.part(inputs.twice())
    for rows in ([0, 1], [2, 3]):
        values = {name: of[rows] for name, of in inputs.by_sequence.items()}
        parts.part(Inputs(inputs.tokens.select(rows), values, rows=2).twice())
    for made in (whole, parts):
        made.update()
    torch.testing.assert_close(whole.numbers, parts.numbers, rtol=1e-5, atol=1e-6)


def test_fixed_shapes_do_not_change_the_loss() -> None:
    inputs = batch([9, 5, 3])
    fixed = inputs.fixed(tokens=64, sequences=16, max_length=16).twice()
    assert fixed.tokens.max_length == 16
    plain, padded = stepper(0.0, 1.0), stepper(0.0, 1.0)
    plain.part(inputs.twice())
    padded.part(fixed)
    torch.testing.assert_close(plain.sums, padded.sums, rtol=1e-5, atol=1e-6)


def test_tasks_without_classes_are_refused() -> None:
    check_rdrop(Classify(kind="number"), 0.0)
    check_rdrop(Classify(kind="multi", names=("a",)), 1.0)
    with pytest.raises(InputError, match=r"rdrop=1 compares the probabilities of classes.*classify.*Leave it out"):
        check_rdrop(Classify(kind="number"), 1.0)


def test_a_training_with_rdrop_in_all_or_the_last_steps(small: Train, digest: Digest, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"steps": 4, "dev_fraction": 0.0, "dropout": 0.2}
    small(tmp_path / "all", **settings, rdrop=1.0)
    small(tmp_path / "late", **settings, rdrop=1.0, rdrop_start=0.5)
    small(tmp_path / "never", **settings)
    assert len({digest(tmp_path / name) for name in ("all", "late", "never")}) == 3


def test_rdrop_may_begin_within_a_training() -> None:
    """As two trainings: without and with it."""
    inputs, made = batch([9, 5, 3]), stepper(0.0, 0.0)
    for weight in (0.0, 2.0):
        made.set_rdrop(weight)
        made.part(inputs.twice() if weight else inputs)
        made.update()
    plain = stepper(0.0, 0.0)
    for _ in range(2):
        plain.part(inputs)
        plain.update()
    torch.testing.assert_close(made.numbers[[0, 2]], plain.numbers[[0, 2]], rtol=1e-4, atol=1e-5)


def test_a_start_without_rdrop_is_refused(small: Train, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rdrop_start=0.5 was given, but this training does not use R-Drop.*rdrop=1"):
        small(tmp_path / "run", steps=2, rdrop_start=0.5)


def test_ranks_with_rdrop(torchrun: Any, tmp_path: Path) -> None:
    torchrun(tmp_path / "run", steps=2, dev_fraction=0.0, rdrop=1.0)
    assert (tmp_path / "run/model.safetensors").exists()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_steps_are_the_plain_ones() -> None:
    device = torch.device("cuda")
    losses = []
    for record in (False, True):
        network = new_network(0.0).to(device)
        optimizer = build_optimizer(network, fill_from_recipe(Settings()), lr=0.01)
        made = Stepper(network, TASK, optimizer, clip=0.0, dtype=torch.bfloat16, compile=record, record=record)
        made.set_rdrop(1.0)
        for seed in range(3):
            inputs = batch([9, 5, 3], seed).fixed(tokens=64, sequences=16, max_length=16).twice()
            made.part(inputs if record else inputs.to(device))
            made.update()
            losses.append(float(made.numbers[0]))
    assert losses[:3] == pytest.approx(losses[3:], rel=0.02)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_recorded_step_is_recorded_again_when_rdrop_begins() -> None:
    network = new_network(0.0).to("cuda")
    optimizer = build_optimizer(network, fill_from_recipe(Settings()), lr=0.0)
    made = Stepper(network, TASK, optimizer, clip=0.0, dtype=torch.bfloat16, record=True)
    losses = []
    for weight in (0.0, 0.0, 1.0, 1.0):
        made.set_rdrop(weight)
        inputs = batch([9, 5, 3]).fixed(tokens=64, sequences=16, max_length=16)
        made.part(inputs.twice() if weight else inputs)
        made.update()
        losses.append(float(made.numbers[0]))
    assert losses == pytest.approx([losses[0]] * 4, rel=0.01)
