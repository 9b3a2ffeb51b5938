from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.presets import transformer_config

from regard.checkpoint.families import PRESETS, preset
from regard.errors import InputError
from regard.model.block import FeedForward
from regard.model.hooks import record
from regard.ragged import Ragged

TINY = [name for name in PRESETS if name.startswith("tiny-")]
HEADS = {"encoder": {"masked": 0, "next": 0, "sequence": 3, "token": 5}}
BOTH_SIDES = {"sides": 0, "sequence": 3, "token": 5}


def all_heads(name):
    made = preset(name)
    return BOTH_SIDES if made.family == "elmo" else HEADS.get(made.config.kind, {"language": 0})


def forward(network, batch, target):
    return network(batch, target) if network.config.kind == "encoder-decoder" else network(batch)


@pytest.mark.parametrize("name", TINY)
@settings(max_examples=4, deadline=None)
@given(lengths=st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=2, max_size=5))
@torch.no_grad()
def test_batched_equals_single(build, tokens, name, lengths):
    network = build(name, all_heads(name))
    batch, target = (tokens([pair[i] for pair in lengths], seed=i) for i in (0, 1))
    together = forward(network, batch, target)
    both = network.config.kind == "encoder-decoder"
    of_tokens = (target if both else batch).split
    for b in range(len(lengths)):
        alone = forward(network, batch.select([b]), target.select([b]))
        close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}
        torch.testing.assert_close(of_tokens(together.hidden)[b], alone.hidden, **close)
        torch.testing.assert_close(of_tokens(together.logits)[b], alone.logits, **close)
        if together.pooled is not None:
            torch.testing.assert_close(together.pooled[b], alone.pooled[0], **close)
        if together.next_sentence is not None:
            torch.testing.assert_close(together.next_sentence[b], alone.next_sentence[0], **close)


@pytest.mark.parametrize("name", TINY)
def test_a_gradient_flows_to_every_parameter(build, tokens, name):
    network = build(name, all_heads(name))
    target = tokens([9, 2, 11], seed=1)
    batch = tokens([6, 8, 3])
    if network.config.segments:
        batch = replace(batch, segments=torch.randint(network.config.segments, (17,)))
    output = forward(network, batch, target)
    messages = [x for x in (output.hidden, output.logits, output.next_sentence) if x is not None]
    if network.config.kind == "encoder":
        messages += [network.heads["sequence"](output.pooled), network.heads["token"](output.hidden)]
    sum((x * torch.randn(x.shape)).sum() for x in messages).backward()
    for path, parameter in network.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path
        assert parameter.grad.abs().sum() > 0, path


@pytest.mark.parametrize("name", TINY)
def test_logits_at_some_positions_are_those_of_the_whole(build, tokens, name):
    """Pooled vectors too, and the gradients: what the last layer leaves out is what nobody reads."""
    batch, target, at = tokens([4, 7, 1]), tokens([5, 6, 1], seed=1), torch.tensor([1, 9, 3])
    results = []
    for places in (None, at):
        network = build(name, all_heads(name))
        both = network.config.kind == "encoder-decoder"
        output = network(batch, target if both else None, at=places)
        chosen = slice(None) if places is not None else at
        message = {"hidden": output.hidden[chosen], "logits": output.logits[chosen]}
        message |= {part: value for part in ("pooled", "next_sentence") if (value := getattr(output, part)) is not None}
        sum((x * torch.arange(x.numel()).view(x.shape).cos()).sum() for x in message.values()).backward()
        results.append(message | {path: one.grad for path, one in network.named_parameters() if one.grad is not None})
    assert results[0].keys() == results[1].keys()
    for part, value in results[0].items():
        torch.testing.assert_close(results[1][part], value, rtol=1e-4, atol=1e-4, msg=partial(_message_with_name, part))


def _message_with_name(name: str, message: str) -> str:
    return f"{name}: {message}"


@torch.no_grad()
def test_the_last_layer_works_out_what_is_read_alone(build, tokens, monkeypatch):
    batch, none, recorded = tokens([4, 7]), torch.tensor([], dtype=torch.int64), []
    plain = FeedForward.forward
    monkeypatch.setattr(FeedForward, "forward", lambda self, x: [recorded.append(len(x)), plain(self, x)][1])
    for heads, at, rows in (
        ({"masked": 0}, torch.tensor([1, 9, 3]), 3),
        ({"masked": 0, "next": 2}, torch.tensor([1, 9, 3]), 5),
        ({"sequence": 3}, none, 2),
    ):
        network = build("tiny-bert", heads)
        output = network(batch, at=at)
        assert recorded[-2:] == [11, rows]
        assert len(output.hidden) == len(at)
        with record(network, "encoder.layers.*") as inside:  # who looks inside sees all of it
            again = network(batch, at=at)
        assert [len(value) for value in inside.values()] == [11, 11]
        torch.testing.assert_close(again.hidden, output.hidden)
        torch.testing.assert_close(again.logits, output.logits)


@torch.no_grad()
@pytest.mark.parametrize("how", ["first", "mean", "max"])
def test_a_vector_of_the_whole_needs_no_token_by_itself(build, tokens, how):
    config = transformer_config("tiny-bert")
    network = build(replace(config, pool=replace(config.pool, pooling=how)), {"sequence": 3})
    batch = tokens([4, 7, 2])
    output = network(batch, at=torch.tensor([], dtype=torch.int64))
    torch.testing.assert_close(output.logits, network(batch).logits, rtol=1e-5, atol=1e-5)


def test_what_is_computed_again_is_the_same_at_some_places(build, tokens):
    batch, at, results = tokens([4, 7]), torch.tensor([1, 9]), []
    for again in (False, True):
        network = build("tiny-bert", {"masked": 0})
        network.reader.gradient_checkpointing = again
        network(batch, at=at).logits.square().sum().backward()
        results.append([one.grad for one in network.parameters() if one.grad is not None])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@torch.no_grad()
def test_a_decoder_does_not_see_what_comes_after(build, tokens):
    for name in ("tiny-gpt2", "tiny-llama"):
        network, batch = build(name), tokens([8])
        other = replace(batch, ids=torch.cat([batch.ids[:5], (batch.ids[5:] + 1) % 100]))
        one, two = network(batch).hidden, network(other).hidden
        torch.testing.assert_close(one[:5], two[:5])
        assert (one[5:] - two[5:]).abs().min(0).values.max() > 0


def test_shared_layers_run_as_often_as_set(build):
    network = build(replace(transformer_config("tiny-albert"), layers=6, distinct_layers=2))
    assert len(network.encoder.layers) == 2
    assert [network.encoder.layer_index(i) for i in range(6)] == [0, 0, 0, 1, 1, 1]


def test_tied_outputs_are_the_embeddings_and_untied_are_not(build):
    tokens_of = {"tiny-bert": "masked", "tiny-gpt2": "language", "tiny-t5": "language", "tiny-electra": "masked"}
    for name, head in tokens_of.items():
        network = build(name, {head: 0})
        assert network.heads[head].output.weight is network.main.embeddings.tokens.weight
    network = build("tiny-llama")
    assert network.heads["language"].output.weight is not network.main.embeddings.tokens.weight
    both = build("tiny-t5")
    assert both.encoder.embeddings.tokens is both.decoder.embeddings.tokens


@torch.no_grad()
def test_empty_sequences_and_batches_pass_through(build, tokens):
    network, batch = build("tiny-bert", {"sequence": 3}), tokens([4, 0, 7, 0])
    torch.testing.assert_close(network(batch).hidden, network(tokens([4, 7])).hidden, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(network(batch).logits[[0, 2]], network(tokens([4, 7])).logits, rtol=1e-5, atol=1e-5)
    assert torch.equal(network(batch).logits[1], network(batch).logits[3])
    assert build("tiny-bert")(Ragged.of([])).hidden.shape == (0, 32)
    assert build("tiny-gpt2")(Ragged.of([])).logits.shape == (0, 100)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda build: build("tiny-gpt2")(Ragged.of([[1] * 129])), "129 tokens, but this network reads at most 128"),
        (lambda build: build("tiny-t5")(Ragged.of([[1]])), "needs a second batch for its decoder"),
        (lambda build: build("tiny-t5")(Ragged.of([[1]]), Ragged.of([[1], [2]])), "1 source sequences but 2 targets"),
        (lambda build: build("tiny-bert")(Ragged.of([[1]]), Ragged.of([[1]])), "kind encoder reads one batch"),
        (lambda build: build("tiny-bert").new_cache(sequences=1), "encoder-only network"),
        (lambda build: build("tiny-gpt2").new_cache(source=Ragged.of([[1]])), "Give `sequences`"),
        (lambda build: build("tiny-t5").new_cache(sequences=1), "needs `source`"),
        (lambda build: build("tiny-gpt2", {}).step(Ragged.of([[1]]), None), 'has no "language" head'),
    ],
)
def test_wrong_use_says_what_is_missing(build, wrong, message):
    with pytest.raises(InputError, match=message):
        wrong(build)
