from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.config import PositionConfig
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import PairRecord
from regard.predict import Model
from regard.tasks.embed import Embed, SimilarityAnswer
from regard.tasks.inference import network_runner, score_records
from regard.text.learn import train_tokenizer_from_texts

GOLDEN = [1.06938, 1.08996, 1.0834, 1.10807, 1.09264, 1.08813, 1.06993, 1.07628, 1.09828, 1.07399]
GOLDEN += [1.07927, 1.03883, 1.05035, 1.07359, 1.00158, 0.97355, 0.41, 1.05545, 1.02774, 0.95856]
NUMBERS = [0.36847, 0.35715, 0.41424, 0.49429, 0.41341, 0.41241, 0.74327, 0.41392, 0.49336, 0.41271]
NUMBERS += [0.41193, 0.7422, 0.41353, 0.49217, 0.41179, 0.41133, 0.74081, 0.41302, 0.49059, 0.41054]
CPU = torch.device("cpu")
NOUNS = ("boat", "wave", "salt", "harbour", "net", "gull", "barley", "plough", "cow", "hay", "field", "barn")
PAIRS = [
    PairRecord(f"where is the {one}", f"here lies a {two} of mine")
    for one, two in zip(NOUNS, NOUNS[5:] + NOUNS[:5], strict=True)
]
LIKE = [
    PairRecord(f"the {one} and the {two}", f"the {one} and the {three}", 5.0 if two == three else 1.0)
    for one in NOUNS[:4]
    for two in NOUNS[4:7]
    for three in NOUNS[5:8]
]


@pytest.fixture(scope="module")
def preprocessing() -> Preprocessing:
    words = train_tokenizer_from_texts([text for pair in PAIRS for text in (pair.first, pair.second)] * 9, size=90)
    return Preprocessing(words, from_preset("tiny-bert", heads={}).config)


@pytest.mark.parametrize("longest", [512, 6])
def test_vectors_are_those_of_embed(preprocessing: Preprocessing, longest: int) -> None:
    """Also of texts in windows: every token once, from the window that shows most around it."""
    checkpoint = from_preset("tiny-bert", heads={}, positions=PositionConfig(max_tokens=longest))
    task = Embed()
    examples = task.examples(PAIRS[:5], Preprocessing(preprocessing.tokenizer, checkpoint.config), labeled=False)
    assert len(examples) == len(examples.lengths) == len(examples.owners) == 5
    inputs = examples.take([3, 0, 4])
    assert inputs.tokens.tokens == examples.lengths[[3, 0, 4]].sum()
    assert (len(inputs.tokens) > 6) == (longest == 6)
    with torch.inference_mode():
        result = task.vectors(checkpoint.network(inputs.tokens), inputs)
    model = Model(checkpoint, tokenizer=preprocessing.tokenizer)
    for row, vectors in enumerate(result):
        texts = [(PAIRS[number].first, PAIRS[number].second)[row] for number in (3, 0, 4)]
        expected = model.embed(texts, pooling="mean", normalize=True)
        np.testing.assert_allclose(vectors.numpy(), expected, atol=1e-6)


def test_losses_are_what_they_say(preprocessing: Preprocessing) -> None:
    torch.manual_seed(0)
    network = from_preset("tiny-bert", heads={}).network
    for task, records in ((Embed(), PAIRS), (Embed(symmetric=False), PAIRS), (Embed.from_records(LIKE), LIKE)):
        inputs = task.examples(records, preprocessing, labeled=True).take(range(6))
        with torch.no_grad():
            output = network(inputs.tokens)
            loss = task.loss(output, inputs)
            first, second = (part.double() for part in task.vectors(output, inputs))
        cosines = first @ second.T
        own = torch.arange(6)
        if task.scale is not None:
            gold = torch.tensor([(record.label - 1) / 4 for record in LIKE[:6]])  # type: ignore[operator]  # numbers
            expected = (cosines.diagonal() - gold).square().mean()
        else:
            there, back = (torch.nn.functional.cross_entropy(part / 0.05, own) for part in (cosines, cosines.T))
            expected = (there + back) / 2 if task.symmetric else there
        assert float(loss.sum / loss.count) == pytest.approx(float(expected), abs=1e-5)
        assert int(loss.count) == 6


def learned(task: Embed, records: list[PairRecord], preprocessing: Preprocessing, *, steps: int) -> float:
    torch.manual_seed(0)
    network = from_preset("tiny-bert", heads={}).network.eval()
    examples = task.examples(records, preprocessing, labeled=True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(steps):
        inputs = examples.take(range(len(examples)))
        loss = task.loss(network(inputs.tokens), inputs)
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        optimizer.step()
    return score_records(task, network_runner(network, task), records, preprocessing, device=CPU).value


def test_pairs_find_each_other(preprocessing: Preprocessing) -> None:
    """Every second text is found among twelve; before, hardly more than chance."""
    assert learned(Embed(), PAIRS, preprocessing, steps=0) < 0.5
    assert learned(Embed(), PAIRS, preprocessing, steps=25) > 0.9


def test_cosines_rank_as_the_numbers_do(preprocessing: Preprocessing) -> None:
    task = Embed.from_records(LIKE)
    assert task.scale == (1.0, 5.0)
    assert learned(task, LIKE, preprocessing, steps=25) > 0.7, (
        "with two numbers, two ninths of them high, 0.72 is the most"
    )
    meter = task.meter()
    for record in LIKE:
        task.update(meter, SimilarityAnswer(similarity=0.1 if record.label == 1.0 else 0.9), record)
    scores = meter.scores()
    assert next(iter(scores)) == meter.main == "spearman"
    assert scores["spearman"].value == pytest.approx(1.0)
    assert scores["mae"].value == pytest.approx(0.4)


def test_gradients_of_a_blank_part_are_nothing(preprocessing: Preprocessing) -> None:
    network, task = from_preset("tiny-bert", heads={}).network, Embed()
    blank = task.examples(PAIRS, preprocessing, labeled=True).take([0]).without_targets()
    loss = task.loss(network(blank.tokens), blank)
    assert float(loss.count) == 0
    loss.sum.backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in network.parameters())


def test_twenty_steps_give_the_losses_they_gave(small, pairs):
    numbers = [replace(pair, label=float(row % 3)) for row, pair in enumerate(pairs)]
    assert small.golden(Embed(temperature=0.5), pairs) == pytest.approx(GOLDEN, abs=1e-4)
    assert small.golden(Embed.from_records(numbers), numbers) == pytest.approx(NUMBERS, abs=1e-4)
