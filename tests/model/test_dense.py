import copy
import pickle

import pytest
import torch
from torch import nn

from regard.model import dense
from regard.model.dense import FEW, SEVERAL, Linear, can_pack, pack


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 16, 64, 65])
def test_few_rows_or_many_say_the_same(rows, bias):
    ours = Linear(24, 40, bias=bias)
    theirs = nn.Linear(24, 40, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(rows, 24)
    with torch.no_grad():
        said = ours(x)
        assert said.is_contiguous()
        torch.testing.assert_close(said, theirs(x))


def test_what_learns_or_is_cast_goes_the_usual_way():
    layer, x = Linear(8, 8), torch.randn(16, 8)
    assert not layer.quick(x)
    with torch.no_grad():
        assert not layer.quick(x.bfloat16())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert not layer.quick(x)
            assert layer(x).dtype == torch.bfloat16
    layer(x).sum().backward()
    assert layer.weight.grad is not None


packs = pytest.mark.skipif(not can_pack(), reason="torch has no oneDNN with Arm's kernels here")


@packs
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, SEVERAL, 7, FEW[0], 33, FEW[-1], 200])
def test_a_weight_laid_out_for_reading_says_the_same(rows, bias):
    layer, x = Linear(24, 40, bias=bias), torch.randn(rows, 24)
    plain = layer(x)
    pack(layer)
    assert layer.packs
    torch.testing.assert_close(layer(x), plain)
    turned = torch.randn(24, rows).t()
    torch.testing.assert_close(layer(turned), nn.functional.linear(turned, layer.weight, layer.bias))


@packs
@torch.no_grad()
def test_a_weight_that_was_changed_is_laid_out_anew():
    layer, x = Linear(16, 16), torch.randn(32, 16)
    pack(layer)
    layer(x)
    for change in (
        lambda: layer.weight.mul_(2),
        lambda: layer.load_state_dict(Linear(16, 16).state_dict()),
        lambda: setattr(layer, "weight", nn.Parameter(torch.randn(16, 16))),
    ):
        change()
        torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


@packs
@torch.no_grad()
def test_what_is_laid_out_is_neither_copied_nor_saved():
    layer, x = Linear(16, 16), torch.randn(32, 16)
    pack(layer)
    said = layer(x)
    assert set(layer.state_dict()) == {"weight", "bias"}
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin._packed is None
        torch.testing.assert_close(twin(x), said)


def test_too_many_weights_are_not_kept_twice(monkeypatch):
    monkeypatch.setattr(dense, "can_pack", lambda: True)
    monkeypatch.setattr(dense, "MOST", 4 * 16 * 16)
    one, two = Linear(16, 16), nn.Sequential(Linear(16, 16), Linear(16, 16))
    pack(one)
    pack(two)
    assert one.packs
    assert not two[0].packs
    two[1].weight = two[0].weight
    pack(two)
    assert two[1].packs


def test_what_learns_does_not_read_a_copy():
    layer, x = Linear(8, 8), torch.randn(16, 8)
    layer.packs = True
    layer(x).sum().backward()
    assert layer._packed is None
    assert layer.weight.grad is not None
