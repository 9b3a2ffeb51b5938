"""Weights in bfloat16 that are converted all at once: the gradients are those of autocast."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from regard.checkpoint.source import from_preset
from regard.model.kernels import half_weights
from regard.model.kernels.half_weights import HalfWeights, add_gradients
from regard.model.transformer import Transformer
from regard.ragged import Ragged

pytestmark = pytest.mark.filterwarnings("ignore:Mismatch dtype:UserWarning")  # of autocast, with which this is compared
ENCODERS = ["tiny-bert", "tiny-modernbert", "tiny-albert", "tiny-electra"]


@pytest.fixture(autouse=True)
def without_mkldnn() -> Iterator[None]:
    """On a CPU without bfloat16, a product that fails in oneDNN would turn it off for all tests after it."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)  # torch.backends.mkldnn.flags warns of other settings
    yield
    torch._C._set_mkldnn_enabled(enabled)


def new_network(preset: str = "tiny-bert", head: str = "sequence") -> Transformer:
    network = from_preset(preset, heads={head: 3 if head == "sequence" else 0}, seed=1).network.eval()
    assert isinstance(network, Transformer)
    return network


def texts(seed: int = 0) -> Ragged:
    generator = torch.Generator().manual_seed(seed)
    return Ragged.of([torch.randint(5, 99, (n,), generator=generator).tolist() for n in (9, 5, 3)])


def backward(network: Transformer, batch: Ragged) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        output = network(batch)
    output.logits.float().square().sum().backward()


def gradients(network: Transformer) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in network.named_parameters() if parameter.grad is not None}


def converted_at_once(network: Transformer, *batches: Ragged) -> dict[str, Tensor]:
    halves = HalfWeights(network, torch.bfloat16)
    for batch in batches:
        with halves.installed():
            backward(network, batch)
    return gradients(network)


def assert_alike(some: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert some.keys() == expected.keys()
    for name, grad in expected.items():
        assert some[name].dtype == torch.float32
        error = float((some[name] - grad).norm() / grad.norm().clamp(min=1e-6))
        assert error < 0.03, f"{name}: {error}"


@pytest.mark.parametrize("preset", ENCODERS)
def test_gradients_are_those_of_autocast(preset: str) -> None:
    expected = new_network(preset)
    backward(expected, texts())
    assert_alike(converted_at_once(new_network(preset), texts()), gradients(expected))


def test_a_linear_layer_has_the_same_bits() -> None:
    x_NI, plain = torch.randn(7, 24), nn.Linear(24, 8)
    copied = copy.deepcopy(plain)
    with torch.autocast("cpu", torch.bfloat16):
        plain(x_NI).float().square().sum().backward()
        with HalfWeights(copied, torch.bfloat16).installed():
            copied(x_NI).float().square().sum().backward()
    assert copied.weight.grad is not None
    assert plain.weight.grad is not None
    assert torch.equal(copied.weight.grad, plain.weight.grad)
    assert copied.bias.grad is not None
    assert plain.bias.grad is not None
    assert torch.equal(copied.bias.grad, plain.bias.grad)


def test_gradients_of_several_parts_are_added_in_fp32() -> None:
    one, other = converted_at_once(new_network(), texts(0)), converted_at_once(new_network(), texts(1))
    both = converted_at_once(new_network(), texts(0), texts(1))
    for name, total in both.items():
        assert torch.equal(total, one[name] + other[name]), name


def test_a_gradient_stays_the_same_tensor() -> None:
    """A recorded step refers to it by its address."""
    network = new_network()
    first = {name: grad.data_ptr() for name, grad in converted_at_once(network, texts()).items()}
    assert first == {name: grad.data_ptr() for name, grad in converted_at_once(network, texts(1)).items()}


def test_weights_are_read_anew_in_every_part() -> None:
    network, changed = new_network(), new_network()
    halves = HalfWeights(network, torch.bfloat16)
    with torch.no_grad():
        for one in (network, changed):
            for parameter in one.parameters():
                parameter.mul_(1.25)
    with halves.installed():
        backward(network, texts())
    backward(changed, texts())
    assert_alike(gradients(network), gradients(changed))


@pytest.mark.parametrize("preset", ["tiny-gpt2", "tiny-llama"])
def test_gradients_of_language_models(preset: str) -> None:
    expected = new_network(preset, head="language")
    backward(expected, texts())
    assert_alike(converted_at_once(new_network(preset, head="language"), texts()), gradients(expected))


def test_an_output_layer_that_is_the_embedding_too_is_not_copied() -> None:
    network = new_network("tiny-gpt2", head="language")
    embedding = next(module.weight for module in network.modules() if isinstance(module, nn.Embedding))
    halves = HalfWeights(network, torch.bfloat16)
    assert id(embedding) not in halves.copy_of
    assert any(embedding is other for other in halves.others)


def test_recomputed_states_use_the_copies_too() -> None:
    network = new_network()
    network.reader.gradient_checkpointing = True
    some = converted_at_once(network, texts())
    plain = converted_at_once(new_network(), texts())
    assert some.keys() == plain.keys()
    assert all(torch.equal(some[name], plain[name]) for name in plain)


def test_frozen_weights_have_no_gradient() -> None:
    network = new_network()
    for parameter in network.reader.embeddings.parameters():
        parameter.requires_grad_(False)
    network.reader.layers[0].requires_grad_(False)
    some = converted_at_once(network, texts())
    assert some
    assert {name for name, parameter in network.named_parameters() if parameter.requires_grad} >= some.keys()


def test_weights_are_put_back_after_an_error() -> None:
    network = new_network()
    before = dict(network.named_parameters())
    backward(network, texts())
    grads = {name: grad.clone() for name, grad in gradients(network).items()}
    with pytest.raises(ValueError, match="out of range"), HalfWeights(network, torch.bfloat16).installed():
        raise ValueError("out of range")
    assert all(parameter is before[name] for name, parameter in network.named_parameters())
    assert all(torch.equal(grad, grads[name]) for name, grad in gradients(network).items())


def test_gradients_after_an_error_are_those_of_the_next_part_alone() -> None:
    """As when memory ran out in the backward pass."""
    network = new_network()
    halves = HalfWeights(network, torch.bfloat16)

    def fail() -> None:
        with halves.installed():
            backward(network, texts(1))
            raise ValueError("out of memory")

    with pytest.raises(ValueError, match="out of memory"):
        fail()
    with halves.installed():
        backward(network, texts())
    expected = converted_at_once(new_network(), texts())
    assert all(torch.equal(grad, expected[name]) for name, grad in gradients(network).items())


def test_nothing_to_add() -> None:
    weight = nn.Parameter(torch.ones(2))
    add_gradients([(weight, None)])
    assert weight.grad is None


def test_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    network = new_network()
    assert HalfWeights.pays(network, torch.bfloat16)
    assert not HalfWeights.pays(network, torch.float32)
    assert not HalfWeights.pays(nn.Linear(2, 2), torch.bfloat16)
    assert not HalfWeights.pays(new_network().to(torch.bfloat16), torch.bfloat16)
    monkeypatch.setattr(half_weights, "MAX_WEIGHTS", 1000)
    assert not HalfWeights.pays(network, torch.bfloat16)
