"""Recurrent language models: batched as alone, stepped as whole, and they learn."""

import pytest
import torch
from tests.model.recurrent.build import bidirectional

from regard.config import RecurrentConfig
from regard.data.batching.examples import LEARN, Inputs
from regard.errors import InputError
from regard.model.recurrent.networks import RecurrentNetwork
from regard.ragged import Ragged
from regard.tasks.language.bidirectional_lm import BidirectionalLM as BothSides
from regard.tasks.language.causal import Causal

LENGTHS = (5, 1, 8, 0, 3)
TEXT = "the cat sat on the mat. the dog sat on the cat. the mat sat still. "


def unidirectional(vocabulary, width):
    return RecurrentNetwork(RecurrentConfig(vocabulary, width, width, kind="decoder", cell="lstm", dropout=0.0))


@pytest.fixture(params=["gru", "lstm"])
def language(request):
    torch.manual_seed(0)
    config = RecurrentConfig(20, width=8, embedding_width=6, layers=2, kind="decoder", cell=request.param)
    return RecurrentNetwork(config).double().eval()


def loss(network, batch):
    task = Causal() if isinstance(network, RecurrentNetwork) else BothSides()
    learn = torch.zeros(batch.tokens, dtype=torch.int8)
    inputs = task.prepare(Inputs(batch, by_token={LEARN: learn}, rows=len(batch)))
    result = task.loss(network(batch), inputs)
    return result.sum, result.count


def test_a_batch_is_its_sequences_one_at_a_time(language, sides, tokens):
    batch = tokens(LENGTHS, vocabulary=20)
    logits, states = language(batch).logits, sides.encoder.all_layers(batch)
    assert states.shape == (3, 17, 16)
    for row in (0, 1, 2, 4):
        alone = batch.select([row])
        assert torch.allclose(batch.split(logits)[row], language(alone).logits, atol=1e-12)
        assert torch.allclose(states[:, batch.sequence_ids == row], sides.encoder.all_layers(alone), atol=1e-12)
    for network in (language, sides):
        parts = [loss(network, batch.select([row])) for row in range(len(LENGTHS)) if LENGTHS[row]]
        total, count = loss(network, batch)
        assert total.item() == pytest.approx(sum(part[0].item() for part in parts), rel=1e-5)
        assert count.item() == sum(part[1].item() for part in parts) == 13 * (2 if network is sides else 1)


def test_gradients_are_those_of_a_plain_loop(language, tokens):
    """One sequence after the other through torch's own layers: the same scores, and the same gradients."""
    batch = tokens((5, 1, 8, 3), vocabulary=20)
    total, count = loss(language, batch)
    total.backward()
    parameters = dict(language.named_parameters())
    results = {name: parameter.grad.clone() for name, parameter in parameters.items()}
    language.zero_grad()
    plain = torch.zeros((), dtype=torch.float64)
    for ids in batch.split(batch.ids):
        states, _ = language.decoder.layers.cells(language.decoder.tokens(ids))
        logits = language.heads["language"](states[:-1])
        plain = plain + torch.nn.functional.cross_entropy(logits.float(), ids[1:], reduction="sum").double()
    plain.backward()
    assert count.item() == 13
    assert total.item() == pytest.approx(plain.item(), rel=1e-6)
    for name, parameter in parameters.items():
        assert torch.allclose(results[name], parameter.grad, atol=1e-6), name


def test_stepping_is_the_whole_pass(language, tokens):
    whole = language(Ragged.of([[1, 2, 3], [4, 5, 6]])).logits.view(2, 3, -1)
    cache = language.new_cache(sequences=2)
    assert torch.allclose(language.step(Ragged.of([[1, 2], [4, 5]]), cache), whole[:, 1], atol=1e-12)
    cache.select(torch.tensor([1, 0]))
    assert torch.allclose(language.step(Ragged.of([[6], [3]]), cache), whole[[1, 0], 2], atol=1e-12)
    with pytest.raises(InputError, match="sequences"):
        language.new_cache(source=Ragged.of([[1]]))
    with pytest.raises(InputError, match="reads one batch"):
        language(Ragged.of([[1]]), Ragged.of([[1]]))
    with pytest.raises(InputError, match=r'recurrent decoder has no head "token"'):
        RecurrentNetwork(language.config, {"token": 3})
    with pytest.raises(InputError, match='has no attention over a source, but score is "dot"'):
        RecurrentConfig(20, 8, 8, kind="decoder", score="dot")


def perplexity(network, batch):
    with torch.no_grad():
        total, count = loss(network, batch)
    return (total / count).exp().item()


@pytest.mark.parametrize("kind", [unidirectional, bidirectional])
def test_perplexity_falls(kind):
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    ids = [letters.index(letter) for letter in TEXT]
    batch = Ragged.of([ids[:40], ids[20:], ids[10:50]])
    network = kind(len(letters), 24)
    before = perplexity(network, batch)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-2)
    for _ in range(30):
        total, count = loss(network, batch)
        (total / count).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert before == pytest.approx(len(letters), rel=0.2)
    assert perplexity(network, batch) < 0.35 * before
