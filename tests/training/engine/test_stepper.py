"""A step: sums divided once, clipped, and the same in every form that memory or the device asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from regard.checkpoint.source import from_preset
from regard.data.batching.examples import Inputs
from regard.errors import RegardError
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.tasks.classify import Classify
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine.optimizer import build_optimizer
from regard.training.engine.stepper import Stepper
from regard.training.initial_model import set_dropout
from regard.training.output.metrics_log import TrainingEvent
from regard.training.result import TrainResult
from regard.training.settings import Settings

Train = Callable[..., TrainResult]
TASK = Classify(names=("a", "b", "c"))


def batch(lengths: list[int], seed: int = 0) -> Inputs:
    generator = torch.Generator().manual_seed(seed)
    tokens = Ragged.of([torch.randint(5, 99, (n,), generator=generator).tolist() for n in lengths])
    labels = torch.randint(0, 3, (len(lengths),), generator=generator)
    weights = torch.rand(len(lengths), generator=generator) + 0.5
    return Inputs(tokens, {"label": labels, "weight": weights}, rows=len(lengths))


def new_network(dropout: float = 0.0) -> Transformer:
    network = from_preset("tiny-bert", heads={"sequence": 3}, seed=1).network.train()
    set_dropout(network, dropout)
    assert isinstance(network, Transformer)
    return network


def stepper(network: Transformer, clip: float = 0.0) -> Stepper:
    return Stepper(network, TASK, build_optimizer(network, fill_from_recipe(Settings()), lr=0.01), clip=clip)


def expected_norm(inputs: Inputs) -> tuple[float, float]:
    network = new_network()
    loss = TASK.loss(network(inputs.tokens), inputs)
    (loss.sum / loss.count).backward()
    grads = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    return float((loss.sum / loss.count).detach()), float(torch.nn.utils.get_total_norm(grads))


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_loss_and_norm_are_those_of_the_mean(clip: float) -> None:
    inputs = batch([9, 5, 3])
    made = stepper(new_network(), clip)
    made.part(inputs)
    made.update()
    loss, norm = expected_norm(inputs)
    assert made.numbers[0] == pytest.approx(loss, rel=1e-6)
    assert made.numbers[2] == pytest.approx(norm, rel=1e-5)
    assert made.mean_loss() == pytest.approx(loss, rel=1e-6)


def test_clipping_is_torch_clipping() -> None:
    """AdamW hides the length of a gradient; plain descent shows it."""
    inputs, network = batch([9, 5, 3]), new_network()
    made = stepper(network, clip=0.05)
    made.optimizer = torch.optim.SGD(network.parameters(), lr=1.0, fused=True)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    made.part(inputs)
    made.update()
    moved = [parameter.detach() - old for parameter, old in zip(network.parameters(), before, strict=True)]
    assert float(torch.nn.utils.get_total_norm(moved)) == pytest.approx(0.05, rel=1e-4)


def recomputed(network: Transformer) -> Transformer:
    network.reader.gradient_checkpointing = True
    return network


def gradients(network: Transformer, inputs: Inputs) -> dict[str, Tensor]:
    torch.manual_seed(3)
    TASK.loss(network(inputs.tokens), inputs).sum.backward()
    return {name: parameter.grad for name, parameter in network.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recomputed_states_give_the_same_gradients(dropout: float) -> None:
    inputs = batch([9, 9, 5, 3])
    plain, again = gradients(new_network(dropout), inputs), gradients(recomputed(new_network(dropout)), inputs)
    assert plain.keys() == again.keys()
    for name in plain:
        torch.testing.assert_close(again[name], plain[name], rtol=0, atol=1e-6)


def test_recomputing_keeps_less() -> None:
    def saved_numbers(network: Transformer) -> int:
        sizes: list[int] = []

        def count(tensor: torch.Tensor) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            network(batch([64] * 8).tokens)
        return sum(sizes)

    assert saved_numbers(recomputed(new_network())) < 0.5 * saved_numbers(new_network())


def test_a_training_that_recomputes(small: Train, digest: Callable[[Path], str], tmp_path: Path) -> None:
    small(tmp_path / "plain", steps=4, dev_fraction=0.0)
    small(tmp_path / "again", steps=4, dev_fraction=0.0, gradient_checkpointing=True)
    assert digest(tmp_path / "plain") == digest(tmp_path / "again")


def short_of_memory(monkeypatch: pytest.MonkeyPatch, limit: int) -> list[int]:
    """No more than so many tokens at once have room."""
    part, recorded = Stepper.part, []

    def tight(self: Stepper, inputs: Inputs) -> None:
        recorded.append(inputs.tokens.ids.numel())
        if recorded[-1] > limit:
            raise torch.OutOfMemoryError("no room")
        part(self, inputs)

    monkeypatch.setattr(Stepper, "part", tight)
    return recorded


def test_out_of_memory_means_more_parts_and_the_same_step(
    small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten: dict[str, Any] = {"steps": 10, "dropout": 0.0, "dev_fraction": 0.0}
    small(tmp_path / "plain", **ten)
    events: list[TrainingEvent] = []
    with monkeypatch.context() as patch:
        recorded = short_of_memory(patch, 150)
        small(tmp_path / "tight", **ten, progress=events.append)
    plain, tight = (load_file(tmp_path / name / "model.safetensors") for name in ("plain", "tight"))
    assert max(float((plain[name] - tight[name]).abs().max()) for name in plain) < 1e-6
    notes = [event.values["text"] for event in events if event.kind == "note"]
    assert len(notes) == 2
    assert "128 tokens at once from now on" in notes[-1]
    assert sum(size > 150 for size in recorded) == 2
    with monkeypatch.context() as patch:
        short_of_memory(patch, 1)
        with pytest.raises(RegardError, match=r"not enough memory for 1 token at once\. Use a smaller batch_tokens"):
            small(tmp_path / "none", **ten)


def test_what_fills_a_fixed_shape_has_no_part_in_the_step() -> None:
    inputs = batch([9, 5, 3])
    made = stepper(new_network())
    made.part(inputs.fixed(tokens=64, sequences=16, max_length=16))
    made.update()
    plain = stepper(new_network())
    plain.part(replace(inputs))
    plain.update()
    for mine, theirs in zip(made.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_steps_with_converted_weights_are_the_plain_ones() -> None:
    losses: dict[bool, list[float]] = {}
    for record in (False, True):
        network = new_network().to("cuda")
        optimizer = build_optimizer(network, fill_from_recipe(Settings()), lr=0.01)
        made = Stepper(network, TASK, optimizer, clip=1.0, dtype=torch.bfloat16, record=record)
        assert (made.halves is not None) == record
        losses[record] = []
        for step in range(6):
            for part in range(2):
                made.part(batch([9, 5, 3], 2 * step + part).fixed(tokens=64, sequences=16, max_length=16).to("cuda"))
            made.update()
            losses[record].append(float(made.numbers[0]))
    assert losses[True] == pytest.approx(losses[False], rel=0.03)
