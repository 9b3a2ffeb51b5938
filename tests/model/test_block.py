"""A block, its attention, and the embeddings before it."""

from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config
from torch import nn
from torch.nn import functional as F

from regard.config import AttentionConfig, ModelConfig, PositionConfig
from regard.model.attention import ForwardContext
from regard.model.block import Block, FeedForward, activation_function, build_norm
from regard.model.kernels.layout import Layout
from regard.ragged import Ragged

CONFIG = ModelConfig(
    vocabulary=9, width=16, layers=1, ffn_width=24, attention=AttentionConfig(4), dropout=0.0, eps=1e-5
)


def flow(*lengths):
    bounds = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    return ForwardContext(Layout.for_self_attention(bounds, max(lengths)))


def copied(block, layer):
    """torch's weights in our block: the same sums under other names."""
    names = {
        "attention.qkv.weight": "self_attn.in_proj_weight",
        "attention.qkv.bias": "self_attn.in_proj_bias",
        "attention.out.weight": "self_attn.out_proj.weight",
        "attention.out.bias": "self_attn.out_proj.bias",
        "attention_norm.weight": "norm1.weight",
        "attention_norm.bias": "norm1.bias",
        "feedforward.up.weight": "linear1.weight",
        "feedforward.up.bias": "linear1.bias",
        "feedforward.down.weight": "linear2.weight",
        "feedforward.down.bias": "linear2.bias",
        "feedforward_norm.weight": "norm2.weight",
        "feedforward_norm.bias": "norm2.bias",
    }
    theirs = layer.state_dict()
    block.load_state_dict({ours: theirs[name] for ours, name in names.items()})


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_block_equals_the_layer_of_torch_forward_and_backward(norm_first, activation, causal):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        16, 4, 24, dropout=0.0, activation=activation, norm_first=norm_first, batch_first=True
    )
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.5)
    block = Block(replace(CONFIG, norm_first=norm_first, activation=activation), causal=causal)
    copied(block, layer)
    x_ND = torch.randn(12, 16, requires_grad=True)
    parts = [x_ND[:5], x_ND[5:7], x_ND[7:]]
    masks = [nn.Transformer.generate_square_subsequent_mask(len(part)) if causal else None for part in parts]
    theirs = torch.cat([layer(part[None], src_mask=mask)[0] for part, mask in zip(parts, masks, strict=True)])
    ours = block(x_ND, flow(5, 2, 5))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    grad = torch.randn(12, 16)
    pair = [torch.autograd.grad(out, x_ND, grad)[0] for out in (ours, theirs)]
    torch.testing.assert_close(*pair, rtol=1e-4, atol=1e-4)


def test_a_block_with_memory_equals_the_decoder_layer_of_torch():
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(16, 4, 24, dropout=0.0, batch_first=True)
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.5)
    block = Block(replace(CONFIG, activation="relu"), causal=True, cross=True)
    theirs = layer.state_dict()
    names = {"attention": ("self_attn", "norm1"), "cross": ("multihead_attn", "norm2"), "feedforward": ("", "norm3")}
    state = {}
    for part, (attention, norm) in names.items():
        for kind in ("weight", "bias"):
            state[f"{part}_norm.{kind}"] = theirs[f"{norm}.{kind}"]
            if attention:
                state[f"{part}.out.{kind}"] = theirs[f"{attention}.out_proj.{kind}"]
    for kind in ("weight", "bias"):
        state[f"feedforward.up.{kind}"] = theirs[f"linear1.{kind}"]
        state[f"feedforward.down.{kind}"] = theirs[f"linear2.{kind}"]
        state[f"attention.qkv.{kind}"] = theirs[f"self_attn.in_proj_{kind}"]
        state[f"cross.query.{kind}"] = theirs[f"multihead_attn.in_proj_{kind}"][:16]
        state[f"cross.memory.{kind}"] = theirs[f"multihead_attn.in_proj_{kind}"][16:]
    block.load_state_dict(state)
    x_TD, memory_SD = torch.randn(4, 16), torch.randn(6, 16)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    expected = layer(x_TD.unsqueeze(0), memory_SD.unsqueeze(0), tgt_mask=causal)[0]
    across = Layout(torch.tensor([0, 4]), torch.tensor([0, 6]), 4, 6)
    ours = block(x_TD, replace(flow(4), memory_MD=memory_SD, memory_layout=across))
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "activation"),
    [("geglu", F.gelu), ("geglu-tanh", lambda x: F.gelu(x, approximate="tanh")), ("swiglu", F.silu)],
)
def test_gated_units_multiply_the_bent_half_with_the_other(name, activation):
    torch.manual_seed(0)
    unit = FeedForward(replace(CONFIG, activation=name))
    x = torch.randn(3, 16)
    gate = x @ unit.up.weight[:24].T + unit.up.bias[:24]
    other = x @ unit.up.weight[24:].T + unit.up.bias[24:]
    torch.testing.assert_close(unit(x), unit.down(activation(gate) * other))


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu-tanh", "silu", "tanh"])
def test_the_activation_of_plain_units_is_between_two_products(name):
    torch.manual_seed(0)
    unit, x = FeedForward(replace(CONFIG, activation=name)), torch.randn(3, 16)
    modules = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu-tanh": nn.GELU("tanh"), "silu": nn.SiLU(), "tanh": nn.Tanh()}
    torch.testing.assert_close(unit(x), unit.down(modules[name](unit.up(x))))
    torch.testing.assert_close(activation_function(name)(x), modules[name](x))


def test_norms_are_those_of_the_settings():
    x = torch.randn(2, 16) * 3 + 1
    torch.testing.assert_close(build_norm(CONFIG, 16)(x), F.layer_norm(x, (16,), eps=1e-5))
    rms = build_norm(replace(CONFIG, norm="rms", eps=1e-6), 16)
    torch.testing.assert_close(rms(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())
    assert build_norm(replace(CONFIG, bias=False), 16).bias is None


def test_dropout_is_on_in_training_alone():
    block = Block(replace(CONFIG, dropout=0.5))
    x, way = torch.randn(4, 16), flow(4)
    assert not torch.equal(block(x, way), block(x, way))
    assert torch.equal(block.eval()(x, way), block(x, way))


def test_normed_embeddings_are_not_normed_again_by_a_pre_norm_block():
    assert isinstance(Block(replace(CONFIG, norm_first=True), first=True).attention_norm, nn.Identity)
    assert isinstance(Block(replace(CONFIG, norm_first=True)).attention_norm, nn.LayerNorm)
    assert isinstance(Block(CONFIG, first=True).attention_norm, nn.LayerNorm)
    bare = replace(CONFIG, norm_first=True, embedding_norm=False)
    assert isinstance(Block(bare, first=True).attention_norm, nn.LayerNorm)


# What a layer of attention may see.


@torch.no_grad()
def test_the_mask_of_the_user_reaches_every_layer(build, tokens):
    """With each token alone, a batch of one sequence says the same as each token in the same place by itself."""
    network, batch = build("tiny-bert"), tokens([5])
    alone = network(batch, mask=lambda sequence, head, query, key: query == key).hidden
    apart = Ragged(batch.ids, torch.arange(6, dtype=torch.int32), batch.positions, 1)
    torch.testing.assert_close(alone, network(apart).hidden, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_local_layer_sees_its_window_and_a_global_one_everything(build, tokens):
    config = replace(transformer_config("tiny-bert"), layers=1)
    batch = tokens([20])
    other = replace(batch, ids=batch.ids.clone().index_fill_(0, torch.tensor([10]), 99))
    for every, far in ((0, False), (1, True)):
        network = build(replace(config, attention=AttentionConfig(4, window=3, global_every=every)))
        moved = (network(batch).hidden - network(other).hidden).abs().amax(1) > 1e-6
        assert moved.tolist() == [far or abs(place - 10) <= 3 for place in range(20)]


# Embeddings of tokens, places and segments.


@torch.no_grad()
def test_without_segments_every_token_is_of_the_first(build, tokens):
    network, batch = build("tiny-bert"), tokens([5, 3])
    options = replace(batch, segments=torch.zeros(8, dtype=torch.int64))
    torch.testing.assert_close(network(batch).hidden, network(options).hidden)
    assert not torch.allclose(network(batch).hidden, network(replace(options, segments=options.segments + 1)).hidden)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
@torch.no_grad()
def test_places_and_scale_are_added_as_the_settings_say(build, tokens, kind):
    positions = PositionConfig(kind, max_tokens=16, offset=2)
    config = replace(transformer_config("tiny-bert"), positions=positions, embedding_scale=True, segments=0)
    embeddings, batch = build(config).encoder.embeddings, tokens([5, 3])
    rows = embeddings.table[batch.positions] if kind == "sinusoidal" else embeddings.places.weight[batch.positions + 2]
    expected = embeddings.norm(embeddings.tokens.weight[batch.ids] * 32**0.5 + rows)
    torch.testing.assert_close(embeddings(batch), expected)
