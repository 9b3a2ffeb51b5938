"""The arithmetic of a head equals what the network computes."""

from __future__ import annotations

import pytest
import torch
from tests.look.models import KINDS, look_input

from regard.errors import InputError
from regard.look.reading import read_text
from regard.look.steps import head_steps
from regard.model.hooks import record
from regard.model.transformer import Transformer


@pytest.mark.parametrize("kind", ["encoder", "albert", "local", "gpt2", "llama", "translator", "relative"])
def test_every_step_is_that_of_the_network(kind: str) -> None:
    model = KINDS[kind]()
    network = model.network
    assert isinstance(network, Transformer)
    reading = read_text(model, look_input())
    for part in reading.parts:
        stack = network.encoder if part.name == "encoder" else network.decoder
        assert stack is not None
        layer, head, token = part.depth, 1, len(part.queries) - 1
        steps = head_steps(model, reading, part.name, layer, head, token)
        module = "cross" if part.name == "cross" else "attention"
        path = f"{'encoder' if part.name == 'encoder' else 'decoder'}.layers.{stack.layer_index(layer - 1)}"
        with record(network, f"{path}.{module}.mix", f"{path}.{module}", path) as outputs, torch.no_grad():
            if reading.target_batch is None:
                network.main(reading.batch)
            else:
                network(reading.batch, reading.target_batch)
        assert torch.allclose(steps.mixed_K, outputs[f"{path}.{module}.mix"][token, head], atol=1e-5)
        assert torch.allclose(steps.attention_D, outputs[f"{path}.{module}"][token], atol=1e-5)
        assert torch.allclose(steps.layer_D, outputs[path][token], atol=1e-5)
        masked = steps.scores_S.masked_fill(~steps.allowed_S, -torch.inf)
        assert torch.allclose(masked.softmax(0), steps.weights_S, atol=1e-5)
        if steps.is_product and steps.bias_S is None:
            assert torch.allclose(steps.dots_S * steps.scale, steps.scores_S, atol=1e-4)


@pytest.mark.parametrize("kind", ["encoder", "gpt2", "translator"])
def test_the_heads_add_up_to_the_output(kind: str) -> None:
    model = KINDS[kind]()
    reading = read_text(model, look_input())
    part = reading.parts[0]
    steps = [head_steps(model, reading, part.name, 1, head, 2) for head in range(part.heads)]
    total = sum((step.contribution_D for step in steps[1:]), start=steps[0].contribution_D)
    network = model.network
    assert isinstance(network, Transformer)
    block = network.main.layers[0]
    attention = block.cross if part.name == "cross" else block.attention
    bias = attention.out.bias
    assert isinstance(bias, torch.Tensor)
    assert torch.allclose(total + bias, steps[0].attention_D, atol=1e-5)
    assert torch.allclose(steps[0].residual_D + steps[0].attention_D, steps[0].sum_D, atol=1e-6)


@pytest.mark.parametrize("kind", ["encoder", "gpt2", "translator", "llama"])
def test_embeddings_are_added(kind: str) -> None:
    model = KINDS[kind]()
    reading = read_text(model, look_input())
    part = next(part for part in reading.parts if part.name != "cross")
    embedding = head_steps(model, reading, part.name, 1, 0, 1).embedding
    assert embedding is not None
    total = embedding.token_D
    for more in (embedding.position_D, embedding.segment_D):
        total = total if more is None else total + more
    if embedding.norm:
        network = model.network
        assert isinstance(network, Transformer)
        total = network.reader.embeddings.norm(total)
    assert torch.allclose(total, embedding.total_D, atol=1e-5)
    assert head_steps(model, reading, part.name, 2, 0, 1).embedding is None


def test_recurrent_networks_have_no_heads() -> None:
    model = KINDS["gru"]()
    with pytest.raises(InputError, match="heads of a Transformer"):
        head_steps(model, read_text(model, look_input()), None, 1, 0, 0)
