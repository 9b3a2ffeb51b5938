from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config
from torch.nn import functional as F

from regard.config import PoolConfig
from regard.errors import InputError
from regard.ragged import Ragged

BERT = transformer_config("tiny-bert")


@torch.no_grad()
def test_each_head_has_the_output_shape_of_its_kind(build, tokens):
    batch = tokens([4, 9])
    shapes = {"masked": (13, 100), "language": (13, 100), "token": (13, 3), "span": (13, 2), "replaced": (13, 1)}
    shapes |= {"sequence": (2, 3)}
    for name, shape in shapes.items():
        output = build("tiny-bert", {name: 3})(batch)
        assert output.logits.shape == shape
        assert (output.pooled is not None) == (name == "sequence")
        assert output.next_sentence is None


@torch.no_grad()
def test_next_sentence_logits_are_separate_from_the_main_head(build, tokens):
    output = build("tiny-bert", {"masked": 0, "next": 0})(tokens([4, 9]))
    assert (output.logits.shape, output.next_sentence.shape, output.pooled.shape) == ((13, 100), (2, 2), (2, 32))
    alone = build("tiny-bert", {"next": 0})(tokens([4, 9]))
    assert alone.logits is None
    assert alone.next_sentence.shape == (2, 2)


@pytest.mark.parametrize("how", ["first", "mean", "max"])
@torch.no_grad()
def test_pooling_takes_the_first_token_the_mean_or_the_greatest(build, tokens, how):
    config = replace(BERT, pool=PoolConfig(how, activation="gelu", norm=True))
    network, batch = build(config, {"sequence": 2}), tokens([4, 9])
    output = network(batch)
    rows = batch.split(output.hidden)
    taken = torch.stack([{"first": row[0], "mean": row.mean(0), "max": row.amax(0)}[how] for row in rows])
    transform, head = network.heads["pooled"].transform, network.heads["sequence"]
    pooled = transform.norm(F.gelu(transform.dense(taken)))
    torch.testing.assert_close(output.pooled, pooled)
    torch.testing.assert_close(output.logits, head.output(pooled))


@pytest.mark.parametrize("how", ["first", "mean", "max"])
@torch.no_grad()
def test_an_empty_sequence_is_pooled_as_zeros_wherever_it_stands(build, how):
    network = build(replace(BERT, pool=PoolConfig(how)), {"pooled": 0})
    batch = Ragged.of([[], [5, 6], []])
    zeros = network.heads["pooled"].transform(torch.zeros(32))
    pooled = network(batch).pooled
    torch.testing.assert_close(pooled[0], zeros)
    torch.testing.assert_close(pooled[2], zeros)


@torch.no_grad()
def test_masked_words_are_transformed_normed_and_scored_by_the_embeddings(build, tokens):
    for name in ("tiny-bert", "tiny-electra"):
        network, batch = build(name, {"masked": 0}), tokens([6])
        output, head = network(batch), network.heads["masked"]
        bent = head.transform.norm(F.gelu(head.transform.dense(output.hidden)))
        expected = bent @ network.encoder.embeddings.tokens.weight.T + head.output.bias
        torch.testing.assert_close(output.logits, expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_output_logits_are_scaled_and_get_a_fixed_bias_if_set(build, tokens):
    t5, batch = build("tiny-t5"), tokens([6])
    output = t5(batch, batch)
    expected = output.hidden * 32**-0.5 @ t5.heads["language"].output.weight.T
    torch.testing.assert_close(output.logits, expected, rtol=1e-4, atol=1e-5)
    bart = build("tiny-bart")
    plain = bart(batch, batch).logits
    bart.heads["language"].bias += torch.arange(100.0)
    torch.testing.assert_close(bart(batch, batch).logits, plain + torch.arange(100.0))
    assert "heads.language.bias" in bart.state_dict()
    assert "heads.language.bias" not in dict(bart.named_parameters())


@torch.no_grad()
def test_token_heads_are_transformed_too_where_the_pooling_says_so(build, tokens):
    network, batch = build("tiny-modernbert", {"token": 3}), tokens([6])
    head, output = network.heads["token"], network(batch)
    bent = head.transform.norm(F.gelu(head.transform.dense(output.hidden)))
    torch.testing.assert_close(output.logits, head.output(bent))
    assert head.transform.dense.bias is None


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({"tokens": 3}, 'head "tokens" is not known. Did you mean "token"'),
        ({"sequence": 0}, 'the "sequence" head needs at least 1 class, not 0'),
        ({"token": -1}, 'the "token" head needs at least 1 class, not -1'),
    ],
)
def test_a_wrong_head_says_so(build, heads, message):
    with pytest.raises(InputError, match=message):
        build("tiny-bert", heads)
