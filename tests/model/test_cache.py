from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config

from regard.config import AttentionConfig, PositionConfig
from regard.errors import InputError
from regard.model.cache import Cache
from regard.model.hooks import replace as put
from regard.ragged import Ragged

TINY = transformer_config("tiny-gpt2")
LLAMA = transformer_config("tiny-llama")
MADE = {
    "sliding window": replace(LLAMA, attention=AttentionConfig(4, kv_heads=2, window=3, global_every=0)),
    "local and global": replace(LLAMA, attention=AttentionConfig(4, window=2, global_every=2)),
    "alibi": replace(TINY, positions=PositionConfig("alibi", max_tokens=None)),
    "additive": replace(TINY, attention=AttentionConfig(4, kv_heads=2, score="additive")),
    "hard": replace(TINY, attention=AttentionConfig(4, select="hard")),
}
ALONE = ["tiny-gpt2", "tiny-llama", *MADE]
ENCODER_DECODERS = ["tiny-t5", "tiny-bart", "tiny-marian", "tiny-transformer", "tiny-pegasus"]
PROMPTS = [5, 1, 9]


def made(build, name):
    return build(MADE.get(name, name), {"language": 0})


def new_cache(network, source, **more):
    return (
        network.new_cache(sequences=len(PROMPTS), **more)
        if source is None
        else network.new_cache(source=source, **more)
    )


def whole(network, target, source):
    output = network(target) if source is None else network(source, target)
    return output.logits[target.last()]


def pieces(batch, cuts):
    """The batch cut at the same places of every sequence, counted from its end, so that prompts stay ragged."""
    rows = batch.split(batch.ids)
    ends = [*cuts, 0]
    for n, left in enumerate(ends):
        before = [0 if n == 0 else len(row) - ends[n - 1] for row in rows]
        yield Ragged.of([row[start : len(row) - left].tolist() for row, start in zip(rows, before, strict=True)])


@pytest.mark.parametrize("name", ALONE + ENCODER_DECODERS)
@torch.no_grad()
def test_stepping_equals_the_whole_forward(build, tokens, name):
    network = made(build, name)
    source = tokens([7, 2, 4], seed=1) if name in ENCODER_DECODERS else None
    batch = tokens([length + 4 for length in PROMPTS])
    cache = new_cache(network, source)
    so_far: list[list[int]] = [[] for _ in PROMPTS]
    for piece in pieces(batch, [4, 3, 2, 1]):
        logits = network.step(piece, cache)
        so_far = [old + new.tolist() for old, new in zip(so_far, piece.split(piece.ids), strict=True)]
        torch.testing.assert_close(logits, whole(network, Ragged.of(so_far), source), rtol=1e-4, atol=1e-5)
    assert so_far == [row.tolist() for row in batch.split(batch.ids)]


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-t5"])
@torch.no_grad()
def test_select_reorders_and_repeats_sequences_as_beams_do(build, tokens, name):
    network = made(build, name)
    source = tokens([7, 2, 4], seed=1) if name in ENCODER_DECODERS else None
    prompt, order = tokens(PROMPTS), [2, 0, 2, 1]
    cache = new_cache(network, source)
    network.step(prompt, cache)
    cache.select(torch.tensor(order))
    assert len(cache) == 4
    source = None if source is None else source.select(order)
    so_far = [row.tolist() for row in prompt.select(order).split(prompt.select(order).ids)]
    for seed in (1, 2):
        new = tokens([1] * 4, seed=seed)
        logits = network.step(new, cache)
        so_far = [old + more.tolist() for old, more in zip(so_far, new.split(new.ids), strict=True)]
        torch.testing.assert_close(logits, whole(network, Ragged.of(so_far), source), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_dropping_the_longest_sequence_keeps_the_others_right(build, tokens):
    network, prompt, new = made(build, "alibi"), tokens(PROMPTS), tokens([1, 1], seed=3)
    cache = network.new_cache(sequences=3)
    network.step(prompt, cache)
    cache.select(torch.tensor([0, 1]))
    assert cache.max_length == 5
    rows = [row.tolist() for row in prompt.split(prompt.ids)]
    expected = whole(network, Ragged.of([rows[0] + [int(new.ids[0])], rows[1] + [int(new.ids[1])]]), None)
    torch.testing.assert_close(network.step(new, cache), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_the_store_grows_when_it_is_full_and_not_before(build, tokens):
    network = made(build, "tiny-gpt2")
    small, large = network.new_cache(sequences=1), network.new_cache(sequences=1, capacity=40)
    batch = tokens([40])
    for place in range(40):
        token = Ragged.of([[int(batch.ids[place])]])
        left, right = network.step(token, small), network.step(token, large)
        torch.testing.assert_close(left, right)
        assert small.layers[0].k_BCGK.shape[1] == (16 if place < 16 else 32 if place < 32 else 64)
        assert large.layers[0].k_BCGK.shape[1] == 40
    torch.testing.assert_close(left, whole(network, batch, None), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_what_is_replaced_while_stepping_is_what_counts(build, tokens):
    """A single step has a kernel of its own, and must still pass through the taps."""
    network, batch = made(build, "tiny-gpt2"), tokens([6])
    for name in ("mix", "k", "v"):
        with put(network, {f"decoder.layers.0.attention.{name}": lambda x: x * 0.5}):
            cache = network.new_cache(sequences=1)
            for token in batch.ids.tolist():
                logits = network.step(Ragged.of([[token]]), cache)
            torch.testing.assert_close(logits, whole(network, batch, None), rtol=1e-4, atol=1e-5)
        assert (logits - whole(network, batch, None)).abs().max() > 1e-3


@torch.no_grad()
def test_too_long_is_an_error_and_leaves_the_cache_as_it_was(build, tokens):
    network = made(build, "tiny-gpt2")
    cache = network.new_cache(sequences=1)
    network.step(tokens([126]), cache)
    for _ in range(2):
        network.step(tokens([1]), cache)
    with pytest.raises(InputError, match="a sequence has 129 tokens, but this network reads at most 128"):
        network.step(tokens([1]), cache)
    assert cache.max_length == 128


def test_a_step_needs_a_token_of_every_sequence(build):
    network = made(build, "tiny-gpt2")
    cache = network.new_cache(sequences=2)
    with pytest.raises(InputError, match="the cache holds 2 sequences, but the step brings 1"):
        network.step(Ragged.of([[1]]), cache)
    with pytest.raises(InputError, match="sequence 1 has no token"):
        network.step(Ragged.of([[1], []]), cache)
    network.step(Ragged.of([[1], [2, 3]]), cache)
    with pytest.raises(InputError, match="3 tokens for 2 sequences; a later pass needs one of each"):
        network.step(Ragged.of([[1], [2, 3]]), cache)


def test_an_empty_cache_has_no_tokens():
    cache = Cache.empty(layers=2, sequences=3, device=torch.device("cpu"), capacity=8)
    assert (len(cache), len(cache.layers), cache.capacity, cache.max_length) == (3, 2, 8, 0)
    assert cache.lengths.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-t5", "tiny-bart"])
@torch.no_grad()
def test_spread_sequences_share_their_memory(build, tokens, name):
    """Beams of a prompt: reordered among themselves, then whole prompts chosen."""
    network, prompt = made(build, name), tokens(PROMPTS)
    source = tokens([7, 2, 4], seed=1) if name in ENCODER_DECODERS else None
    cache = new_cache(network, source)
    network.step(prompt, cache)
    cache.repeat(2)
    owners = [0, 0, 1, 1, 2, 2]
    so_far = [row.tolist() for row in prompt.select(owners).split(prompt.select(owners).ids)]
    for turn, order in enumerate([[0, 1, 2, 3, 4, 5], [1, 1, 3, 2, 4, 4], [4, 5, 1, 0]]):
        cache.select(torch.tensor(order))
        so_far, owners = [so_far[row] for row in order], [owners[row] for row in order]
        for seed in (1, 2):
            new = tokens([1] * len(order), seed=turn + seed)
            so_far = [old + more.tolist() for old, more in zip(so_far, new.split(new.ids), strict=True)]
            expected = whole(network, Ragged.of(so_far), None if source is None else source.select(owners))
            torch.testing.assert_close(network.step(new, cache), expected, rtol=1e-4, atol=1e-5)
    if source is not None:
        assert len(cache.memory) == 2


@torch.no_grad()
def test_each_head_has_its_slots_in_a_row(build, tokens):
    """However the store came about: new, grown, chosen from, or with beams put in other places."""
    network = build("tiny-llama")
    cache = network.new_cache(sequences=3)
    for place in range(20):
        network.step(Ragged.of([[place], [place], [place]]), cache)
        if place == 3:
            cache.repeat(2)
            cache.select(torch.tensor([0, 3, 5]))
        if place == 5:
            cache.select(torch.tensor([1, 1, 0]), changed=torch.tensor([2, 1, 2]))
        for cached in (cache.layers[0].k_BCGK, cache.layers[0].v_BCGK):
            assert cached.transpose(1, 2).is_contiguous()
