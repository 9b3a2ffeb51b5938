"""Recorded CUDA graphs, and steps of decoding in fixed shapes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.presets import transformer_config

from regard.errors import InputError
from regard.model.kernels.cuda_graphs import GraphShape, pack_batch, round_up, supports_graphs, unpack_batch
from regard.model.kernels.decode_graphs import TokenStepper, single_token_batch
from regard.model.transformer import Transformer
from regard.ragged import Ragged

sizes = st.lists(st.integers(1, 512), min_size=1, max_size=40)


@given(st.integers(0, 10**7))
def test_sizes_are_rounded_up_by_at_most_a_sixteenth_or_128_tokens(tokens):
    assert 0 <= round_up(tokens, 128) - tokens <= max(128, tokens / 16)
    assert round_up(round_up(tokens, 128), 128) == round_up(tokens, 128)


def test_few_sizes_serve_many_batches():
    assert len({round_up(tokens, 128) for tokens in range(1, 100_000)}) < 120


@given(sizes)
def test_a_batch_always_fits_its_rounded_shape(lengths):
    batch = Ragged.of([[1] * length for length in lengths])
    shape = GraphShape.rounded(batch, 512)
    filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, max_length=shape.max_length)
    assert filled.tokens == shape.tokens
    assert len(filled) == shape.sequences
    assert shape.max_length <= 512
    assert shape.tokens != shape.sequences


@given(sizes, st.booleans())
def test_a_batch_is_packed_into_one_tensor_and_back(lengths, with_segments):
    rows = [[i + length for i in range(length)] for length in lengths]
    batch = Ragged.of(rows, segments=[[i % 2 for i in row] for row in rows] if with_segments else None)
    shape = GraphShape.rounded(batch, 512)
    filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, max_length=shape.max_length)
    again = unpack_batch(pack_batch(filled), shape)
    assert again.max_length == filled.max_length
    for name in ("ids", "bounds", "positions", "segments"):
        one, other = getattr(again, name), getattr(filled, name)
        assert (one is other is None) or (one.dtype == other.dtype and one.equal(other))


def test_a_network_on_the_cpu_cannot_be_recorded():
    assert not supports_graphs(Transformer(transformer_config("tiny-bert")))


# Steps in fixed shapes, which a GPU records, say what plain steps say.


PROMPTS = [5, 1, 9]


def filled_cache(network, tokens, *, capacity):
    source = {"source": tokens([7, 2, 4], seed=1)} if network.encoder is not None else {"sequences": len(PROMPTS)}
    cache = network.new_cache(**source, capacity=capacity)
    network.step(tokens(PROMPTS), cache)
    return cache


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama", "tiny-t5", "tiny-bart", "tiny-transformer"])
@torch.no_grad()
def test_fixed_shapes_give_the_same_result(build, tokens, name, monkeypatch):
    monkeypatch.setattr("regard.model.kernels.decode_graphs.MIN_SLOTS", 12)  # so that the reach grows on the way
    network = build(name)
    plain, cache = (filled_cache(network, tokens, capacity=40) for _ in range(2))
    steps = TokenStepper(network, cache, fixed=True, limit=network.config.max_tokens)
    reaches = set()
    for turn in range(25):
        new = tokens([1, 1, 1], seed=turn).ids
        message = steps(new)
        torch.testing.assert_close(message, network.step(single_token_batch(new), plain), rtol=1e-4, atol=1e-5)
        assert (cache.max_length, cache.lengths.tolist()) == (plain.max_length, plain.lengths.tolist())
        reaches.add(steps.attended_slots)
    assert reaches == {12, 24, 40}


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-t5"])
@torch.no_grad()
def test_sequences_are_reordered_and_leave(build, tokens, name):
    network = build(name)
    plain, cache = (filled_cache(network, tokens, capacity=40) for _ in range(2))
    for one in (plain, cache):
        one.repeat(2)
    steps = TokenStepper(network, cache, fixed=True)
    for turn, order in enumerate([[0, 1, 2, 3, 4, 5], [1, 0, 2, 2, 5, 5], [2, 3], [1, 0]]):
        for one in (plain, cache):
            one.select(torch.tensor(order))
        for again in range(2):
            new = tokens([1] * len(order), seed=turn + again).ids
            torch.testing.assert_close(steps(new), network.step(single_token_batch(new), plain), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_reordering_keeps_the_tensors_that_are_recorded(build, tokens):
    cache = filled_cache(build("tiny-gpt2"), tokens, capacity=40)
    before = cache.lengths, cache.layers[0].k_BCGK
    cache.select(torch.tensor([2, 0, 1]))
    assert before[0] is cache.lengths
    assert before[1] is cache.layers[0].k_BCGK


@torch.no_grad()
def test_the_capacity_is_limited(build, tokens):
    network = build("tiny-gpt2")
    cache = filled_cache(network, tokens, capacity=10)
    steps = TokenStepper(network, cache, fixed=True, limit=128)
    new = tokens([1, 1, 1]).ids
    steps(new)
    with pytest.raises(InputError, match="10 slots"):
        steps(new)
    longer = network.new_cache(sequences=1, capacity=200)
    network.step(Ragged.of([[1] * 128]), longer)
    with pytest.raises(InputError, match="129 tokens"):
        TokenStepper(network, longer, fixed=True, limit=128)(new[:1])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama", "tiny-t5", "tiny-bart"])
@torch.inference_mode()
def test_recorded_steps_give_the_same_result(build, tokens, name, monkeypatch):
    monkeypatch.setattr("regard.model.kernels.decode_graphs.MIN_SLOTS", 12)
    network = build(name).cuda()
    caches = []
    for _ in range(2):
        source = tokens([7, 2, 4], seed=1).to("cuda") if network.encoder is not None else None
        cache = network.new_cache(source=source, sequences=None if source else 3, capacity=40)
        network.step(tokens(PROMPTS).to("cuda"), cache)
        cache.repeat(2)
        caches.append(cache)
    steps = TokenStepper(network, caches[0], fixed=True)
    for turn in range(25):
        new = tokens([1] * 6, seed=turn).ids.cuda()
        message = steps(new).clone()
        torch.testing.assert_close(message, network.step(single_token_batch(new), caches[1]), rtol=1e-3, atol=1e-4)
        for cache in caches:
            cache.select(torch.tensor([1, 0, 2, 2, 5, 5], device="cuda"))
