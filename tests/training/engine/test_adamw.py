"""AdamW with gradients of rows is AdamW with dense gradients, in every form a training gives them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.checkpoint.source import from_preset
from regard.data.batching.examples import Inputs
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.tasks.classify import Classify
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine import adamw
from regard.training.engine.adamw import AdamW, allocate_state, gradients, row_gradients
from regard.training.engine.optimizer import build_optimizer, named_state, restore_state
from regard.training.engine.stepper import Stepper
from regard.training.initial_model import set_dropout
from regard.training.settings import Settings

ROWS, WIDTH = 400, 8
TASK = Classify(names=("a", "b", "c"))


@pytest.fixture
def network() -> Transformer:
    network = from_preset("tiny-bert", heads={"sequence": 3}).network
    assert isinstance(network, Transformer)
    return network


def trained(
    steps: list[list[int]], *, rows: bool, scale: float | None = None, skipped: int | None = None, **settings: Any
) -> tuple[Tensor, dict[str, Tensor], list[float]]:
    """A table after steps that read these rows, its moments, and the norms of its gradients."""
    torch.manual_seed(0)
    table, norms = nn.Embedding(ROWS, WIDTH), []
    optimizer = AdamW(table.parameters(), fused=True, **{"lr": torch.tensor(0.01), "weight_decay": 0.1, **settings})
    setattr(optimizer, "grad_scale", None if scale is None else torch.tensor(scale))  # noqa: B010  # as the stepper does
    with row_gradients(nn.ModuleDict({"tokens": table})) if rows else nullcontext():
        for number, ids in enumerate(steps):
            for part in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
                (table(torch.tensor(part)) * (torch.arange(WIDTH) - 3 + number)).square().sum().backward()
            assert table.weight.grad is not None
            assert table.weight.grad.is_sparse == rows
            norms.append(float(torch.nn.utils.get_total_norm(gradients([table.weight]))))
            setattr(optimizer, "found_inf", torch.tensor(float(number == skipped)))  # noqa: B010
            optimizer.step()
            table.weight.grad = None
    return table.weight.detach(), dict(optimizer.state[table.weight]), norms


FEW = [[1, 2, 2, 7], [2, 9, 9, 9], [350, 1, 2, 3], [7, 7], [399, 0, 1, 2]]
MANY = [*FEW, list(range(300)), [1, 2], list(range(100, 400)), FEW[0]]


@pytest.mark.parametrize("steps", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"lr": 0.003, "weight_decay": 0.0}, {"scale": 4.0, "betas": (0.8, 0.95), "eps": 1e-6}, {"skipped": 2}],
    ids=["default", "no decay", "scaled", "skipped"],
)
def test_rows_are_updated_as_in_a_dense_tensor(steps: list[list[int]], settings: dict[str, Any]) -> None:
    weight, state, norms = trained(steps, rows=True, **settings)
    expected_weight, expected_state, expected_norms = trained(steps, rows=False, **settings)
    torch.testing.assert_close(weight, expected_weight, rtol=5e-6, atol=1e-7)
    torch.testing.assert_close(state, expected_state, rtol=5e-6, atol=1e-7)
    assert norms == pytest.approx(expected_norms, rel=1e-6)


def test_few_rows_need_no_dense_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(adamw._Table, "dense", fail)
    trained(FEW, rows=True)
    with pytest.raises(AssertionError):
        trained(MANY, rows=True)


def test_a_dense_gradient_is_used_again() -> None:
    table = nn.Embedding(ROWS, WIDTH)
    optimizer, seen = AdamW(table.parameters(), lr=0.1, fused=True), set()
    with row_gradients(nn.ModuleDict({"tokens": table})):
        for ids in (range(300), range(200, 400)):
            table(torch.tensor(ids)).sum().backward()
            optimizer.step()
            assert table.weight.grad is not None
            assert not table.weight.grad.any()
            seen.add(table.weight.grad.data_ptr())
            table.weight.grad = None
    assert len(seen) == 1


def test_tables_of_tokens_with_one_use() -> None:
    for name, heads, expected in (
        ("tiny-bert", {"sequence": 3}, ["encoder.embeddings.tokens"]),
        ("tiny-bert", {"masked": 0}, []),
        ("tiny-gpt2", {"language": 0}, []),
        ("gru-additive", {}, []),  # one table for both languages
    ):
        network = from_preset(name, heads=heads).network
        with row_gradients(network):
            assert [one for one, module in network.named_modules() if getattr(module, "sparse", False)] == expected
        assert not any(getattr(module, "sparse", False) for module in network.modules())


def batches() -> Iterator[Inputs]:
    generator = torch.Generator().manual_seed(0)
    for number in itertools.count():
        tokens = Ragged.of([torch.randint(5, 40 + 9 * number, (n,), generator=generator).tolist() for n in (9, 5, 3)])
        yield Inputs(tokens, {"label": torch.tensor([0, 1, 2]), "weight": torch.ones(3)}, rows=3)


def steps_of(network: Network, count: int, *, start: int = 0, state: dict[str, Tensor] | None = None) -> Stepper:
    optimizer = build_optimizer(network, fill_from_recipe(Settings()), lr=0.01)
    restore_state(network, optimizer, state or {})
    stepper = Stepper(network.train(), TASK, optimizer, clip=1.0)
    for inputs in itertools.islice(batches(), start, start + count):
        stepper.part(inputs)
        stepper.part(inputs)
        stepper.update()
    return stepper


def test_steps_of_a_network(network: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the optimizer is made again in between, as after --resume."""
    monkeypatch.setattr(adamw, "MAX_FRACTION", 1.0)
    set_dropout(network, 0.0)
    first = {name: weight.detach().clone() for name, weight in network.named_parameters()}
    numbers = steps_of(network, 6).numbers
    expected = {name: weight.detach().clone() for name, weight in network.named_parameters()}
    network.load_state_dict(first)
    with row_gradients(network):
        state = named_state(network, steps_of(network, 3).optimizer)
        again = steps_of(network, 3, start=3, state={name: value.clone() for name, value in state.items()})
    torch.testing.assert_close(again.numbers, numbers, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(dict(network.named_parameters()), expected, rtol=1e-5, atol=1e-6)


def test_memory_that_runs_out_in_the_first_step_leaves_no_half_made_state(
    network: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer = build_optimizer(network, fill_from_recipe(Settings()), lr=1.0)
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    zeros_like = torch.zeros_like
    count = 0

    def runs_out(*arguments: Any, **options: Any) -> torch.Tensor:
        nonlocal count
        count += 1
        if count == 4:
            raise torch.OutOfMemoryError("no memory")
        return zeros_like(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "zeros_like", runs_out)
        with pytest.raises(torch.OutOfMemoryError):
            allocate_state(optimizer)
    assert not optimizer.state
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    allocate_state(optimizer)
    optimizer.step()
    assert all((parameter != before[name]).any() for name, parameter in network.named_parameters())


def test_the_state_made_ahead_is_what_adamw_makes_itself(network: Transformer) -> None:
    ahead = build_optimizer(network, fill_from_recipe(Settings()), lr=0.0)
    itself = torch.optim.AdamW(network.parameters(), lr=0.0, fused=True)
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    allocate_state(ahead)
    itself.step()
    for parameter in network.parameters():
        assert ahead.state[parameter].keys() == itself.state[parameter].keys()
        for name, mine in ahead.state[parameter].items():
            theirs = itself.state[parameter][name]
            assert (mine.shape, mine.dtype, mine.device) == (theirs.shape, theirs.dtype, theirs.device)
            assert mine.stride() == theirs.stride()
