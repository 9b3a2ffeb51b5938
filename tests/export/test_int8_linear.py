"""Int8 layers are close to fp32, treat each token by itself, and say so where they cannot be used."""

from __future__ import annotations

import pytest
import torch
from tests.predict.models import TINY, random_checkpoint
from torch import nn

from regard.errors import InputError, RegardError
from regard.export import int8_linear
from regard.export.int8_linear import Int8Linear, check_layer, int8_layers, int8_network
from regard.ragged import Ragged

pytestmark = pytest.mark.skipif(
    int8_linear.ENGINE not in torch.backends.quantized.supported_engines, reason="torch without oneDNN"
)
TRANSFORMERS = [name for name in TINY if int8_layers(random_checkpoint(name).network)]


def layer_and_input(seed: int = 0) -> tuple[nn.Linear, torch.Tensor]:
    torch.manual_seed(seed)
    return nn.Linear(48, 80), torch.randn(20, 48)


@torch.inference_mode()
def test_a_layer_is_close_to_fp32() -> None:
    layer, x = layer_and_input()
    out = Int8Linear(layer, torch.ones(48))(x)
    assert ((out - layer(x)).norm() / layer(x).norm()).item() < 0.02


@pytest.mark.parametrize("needed", [True, False])
def test_activations_have_seven_bits_where_eight_overflow(needed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_linear, "needs_reduced_range", lambda given: needed if given is None else given)
    layer, _ = layer_and_input()
    assert Int8Linear(layer, torch.ones(48)).reduce_range == needed
    assert Int8Linear(layer, torch.ones(48), reduce_range=not needed).reduce_range != needed


@torch.inference_mode()
def test_one_large_token_costs_the_others_no_precision() -> None:
    layer, x = layer_and_input()
    x[0] *= 1000
    out = Int8Linear(layer, torch.ones(48))(x)
    assert ((out[1:] - layer(x)[1:]).norm() / layer(x)[1:].norm()).item() < 0.02


@torch.inference_mode()
def test_smoothing_saves_a_large_dimension() -> None:
    layer, x = layer_and_input()
    x[:, 5] *= 200
    with torch.no_grad():
        layer.weight[:, 5] /= 200
    smoothing = torch.ones(48)
    smoothing[5] = 200
    plain = (Int8Linear(layer, torch.ones(48))(x) - layer(x)).norm()
    smooth = (Int8Linear(layer, smoothing)(x) - layer(x)).norm()
    assert smooth < plain / 5


@torch.inference_mode()
def test_zeros_and_no_tokens() -> None:
    layer, x = layer_and_input()
    int8_layer = Int8Linear(layer, torch.ones(48))
    assert torch.allclose(int8_layer(x * 0), layer.bias.expand(20, -1))
    assert int8_layer(x[:0]).shape == (0, 80)
    assert int8_layer.bytes < layer.weight.nbytes / 2


@pytest.mark.parametrize("name", TRANSFORMERS)
@torch.inference_mode()
def test_every_family_runs_in_int8(name: str) -> None:
    network = random_checkpoint(name).network
    copied = int8_network(network)
    batch = Ragged.of([[3, 5, 9, 11], [7, 2]])
    second = (Ragged.of([[3, 5], [7]]),) if network.encoder is not None and network.decoder is not None else ()
    expected, actual = network(batch, *second).hidden, copied(batch, *second).hidden
    assert torch.cosine_similarity(expected.flatten(), actual.flatten(), dim=0) > 0.98
    assert not any(isinstance(module, Int8Linear) for module in network.modules())
    assert sum(isinstance(module, Int8Linear) for module in copied.modules()) == len(int8_layers(network))


def test_weights_are_shared_and_layers_can_be_excluded() -> None:
    network = random_checkpoint("tiny-bert").network
    name = "encoder.layers.0.feedforward.down"
    copied = int8_network(network, exclude=[name])
    assert copied.get_submodule(name).weight is network.get_submodule(name).weight
    tokens = "encoder.embeddings.tokens.weight"
    assert copied.get_parameter(tokens) is network.get_parameter(tokens)


def test_a_recurrent_network_is_refused() -> None:
    name = next(name for name in TINY if name not in TRANSFORMERS)
    with pytest.raises(InputError, match="no Transformer blocks"):
        int8_network(random_checkpoint(name).network)


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, _ = layer_and_input()
    int8_layer = Int8Linear(layer, torch.ones(48))
    int8_layer.row_scale_O = int8_layer.row_scale_O * 2
    with pytest.raises(RegardError, match="int8 products are wrong on this machine: a layer from 48 to 80"):
        check_layer(layer, int8_layer)
    monkeypatch.setattr(int8_linear, "ENGINE", "missing")
    with pytest.raises(RegardError, match="no missing engine"):
        int8_network(random_checkpoint("tiny-bert").network)
