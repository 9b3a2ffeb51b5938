import copy
import pickle

import pytest
import torch
from torch import nn

from regard.model import linear as dense
from regard.model.linear import FEW, SEVERAL, Linear, can_pack, pack_weights


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 16, 64, 65])
def test_few_rows_or_many_give_the_same_result(rows, bias):
    ours = Linear(24, 40, bias=bias)
    theirs = nn.Linear(24, 40, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(rows, 24)
    with torch.no_grad():
        message = ours(x)
        assert message.is_contiguous()
        torch.testing.assert_close(message, theirs(x))


def test_training_and_autocast_do_not_use_the_inference_kernel():
    layer, x = Linear(8, 8), torch.randn(16, 8)
    assert not layer.is_cpu_inference(x)
    with torch.no_grad():
        assert not layer.is_cpu_inference(x.bfloat16())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert not layer.is_cpu_inference(x)
            assert layer(x).dtype == torch.bfloat16
    layer(x).sum().backward()
    assert layer.weight.grad is not None


packs = pytest.mark.skipif(not can_pack(), reason="torch has no oneDNN here, or not with Arm's kernels")


@packs
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, SEVERAL, 7, FEW[0], 33, FEW[-1], 200])
def test_a_weight_laid_out_for_reading_gives_the_same_result(rows, bias):
    layer, x = Linear(24, 40, bias=bias), torch.randn(rows, 24)
    plain = layer(x)
    pack_weights(layer)
    assert layer.keeps_packed
    torch.testing.assert_close(layer(x), plain)
    turned = torch.randn(24, rows).t()
    torch.testing.assert_close(layer(turned), nn.functional.linear(turned, layer.weight, layer.bias))


@packs
@torch.no_grad()
@pytest.mark.parametrize(("wide", "out"), [(24, 40), (384, 384), (384, 3), (100, 77), (1536, 384)])
def test_a_row_has_the_same_bits_in_any_company(wide, out):
    layer, x = Linear(wide, out), torch.randn(300, wide)
    pack_weights(layer)
    together = layer(x)
    for rows in (1, 2, 3, 4, 7, 8, 33, 64, 65, 200):
        assert torch.equal(layer(x[3 : 3 + rows]), together[3 : 3 + rows])


@packs
def test_only_a_network_that_writes_multiplies_single_rows_apart():
    for head, minimum in (("sequence", 1), ("language", SEVERAL)):
        network = nn.Sequential(Linear(4, 4))
        network.heads = nn.ModuleDict({head: Linear(4, 2)})
        pack_weights(network)
        assert {layer.min_packed_rows for layer in network.modules() if isinstance(layer, Linear)} == {minimum}


def fused(layer):
    """A step of an optimizer that leaves no trace on the weights it changes."""
    with torch.enable_grad():
        layer(torch.randn(32, layer.in_features)).square().sum().backward()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    layer(torch.randn(32, layer.in_features))  # read between the gradient and the step
    optimizer.step()
    optimizer.zero_grad()


CHANGES = {
    "in place": lambda layer: layer.weight.mul_(2),
    "loaded": lambda layer: layer.load_state_dict(Linear(256, 256).state_dict()),
    "another weight": lambda layer: setattr(layer, "weight", nn.Parameter(torch.randn(256, 256))),
    "other data": lambda layer: setattr(layer.weight, "data", torch.randn(256, 256)),
    "fused step": fused,
    "bf16 and back": lambda layer: layer.to(torch.bfloat16).to(torch.float32),
    "emptied": lambda layer: nn.init.normal_(layer.to_empty(device="meta").to_empty(device="cpu").weight),
}


@packs
@torch.no_grad()
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_weight_that_was_changed_is_laid_out_again(change):
    """Many times: what is freed may come back at the same place."""
    layer, x = Linear(256, 256), torch.randn(32, 256)
    pack_weights(layer)
    for _ in range(20):
        layer(x)
        change(layer)
        expected = nn.functional.linear(x, layer.weight, layer.bias)
        torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4, equal_nan=True)


@packs
def test_what_cannot_be_watched_is_not_laid_out():
    with torch.inference_mode():
        layer, x = Linear(16, 16), torch.randn(32, 16)
        pack_weights(layer)
        layer(x)
        layer.weight.mul_(2)
        torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    layer, many = Linear(16, 16), torch.randn(3, 16, 16)
    pack_weights(layer)
    with torch.no_grad():
        message = torch.vmap(lambda weight: torch.func.functional_call(layer, {"weight": weight}, (x.clone(),)))(many)
    assert message.shape == (3, 32, 16)


@packs
@torch.no_grad()
def test_what_is_laid_out_is_neither_copied_nor_saved():
    layer, x = Linear(16, 16), torch.randn(32, 16)
    pack_weights(layer)
    message = layer(x)
    assert set(layer.state_dict()) == {"weight", "bias"}
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin._packed is None
        assert not twin.keeps_packed
        torch.testing.assert_close(twin(x), message)


def test_too_many_weights_are_not_kept_twice(monkeypatch):
    monkeypatch.setattr(dense, "can_pack", lambda: True)
    monkeypatch.setattr(dense, "MOST", 4 * 16 * 16)
    one, two = Linear(16, 16), nn.Sequential(Linear(16, 16), Linear(16, 16))
    pack_weights(one)
    pack_weights(two)
    assert one.keeps_packed
    assert not two[0].keeps_packed


@packs
def test_a_layer_that_learns_forgets_what_was_laid_out():
    layer, x = Linear(8, 8), torch.randn(16, 8)
    pack_weights(layer)
    with torch.no_grad():
        layer(x)
    assert layer._packed is not None
    layer(x).sum().backward()
    assert layer._packed is None
    assert layer.weight.grad is not None
