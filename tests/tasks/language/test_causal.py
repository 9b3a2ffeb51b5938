import math

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.data.batching.examples import Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import DocumentRecord
from regard.tasks.inference import network_runner, score_records
from regard.tasks.language.causal import Causal
from regard.text.learn import train_tokenizer_from_texts

TEXT = "the old man went to the market and the market was closed so the old man went home again"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def preprocessing() -> Preprocessing:
    return Preprocessing(train_tokenizer_from_texts([TEXT] * 20, kind="char"), from_preset("tiny-gpt2").config)


def test_every_token_but_the_first_is_a_target_once(preprocessing: Preprocessing) -> None:
    """However a text is cut into windows, its tokens are counted once."""
    task = Causal()
    network = from_preset("tiny-gpt2").network
    whole = score_records(task, network_runner(network, task), [DocumentRecord(TEXT)], preprocessing, device=CPU)
    cut = Preprocessing(preprocessing.tokenizer, preprocessing.config, window=20)
    parts = task.examples([DocumentRecord(TEXT)], cut, labeled=True)
    assert len(parts) > 3
    inputs = task.prepare(parts.take(range(len(parts))))
    count = len(preprocessing.tokenizer.encode(TEXT, special=False))
    closing = len(parts) * len(preprocessing.tokenizer.surrounding_ids[1])
    assert int((inputs["next"] != -100).sum()) == count + closing
    assert whole.main == "perplexity"
    assert not whole.higher
    assert whole.value == pytest.approx(math.exp(whole.loss), rel=1e-5)
    bits = whole.scores["bits_per_character"].value
    tokens = count + len(preprocessing.tokenizer.surrounding_ids[1])
    assert bits == pytest.approx(whole.loss * tokens / math.log(2) / len(TEXT), rel=1e-5)


def test_what_fills_a_fixed_shape_is_no_target(preprocessing: Preprocessing) -> None:
    task = Causal()
    inputs = task.examples([DocumentRecord(TEXT)], preprocessing, labeled=True).take([0])
    plain, steady = task.prepare(inputs), task.prepare(inputs.fixed(tokens=128, sequences=8, max_length=128))
    count = len(inputs.tokens.ids)
    assert torch.equal(steady["next"][:count], plain["next"])
    assert (steady["next"][count:] == -100).all()


def test_a_step_compiles_whole(preprocessing: Preprocessing) -> None:
    task = Causal()
    network = from_preset("tiny-gpt2").network

    def loss(inputs: Inputs) -> torch.Tensor:
        prepared = task.prepare(inputs)
        result = task.loss(network(prepared.tokens, at=prepared.at), prepared)
        return result.sum / result.count

    inputs = task.examples([DocumentRecord(TEXT)], preprocessing, labeled=True).take([0])
    torch._dynamo.reset()
    run = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(run(inputs), loss(inputs))
    assert Causal.from_settings(task.settings()) == task
