"""Two texts and what holds between them."""

from dataclasses import replace
from typing import Any

import pytest

from regard import samples
from regard.data.batching.framing import Frame
from regard.data.batching.preprocessing import Preprocessing
from regard.data.readers import read
from regard.data.records import PairRecord
from regard.tasks.pair import Pair

GOLDEN = [1.09863, 1.09784, 1.15988, 1.0741, 1.11278, 1.10823, 1.0229, 1.15825, 1.02718, 1.12982]
GOLDEN += [1.11826, 0.99624, 1.16098, 1.00396, 1.13948, 1.12407, 0.98272, 1.16186, 0.98957, 1.14418]


@pytest.fixture
def task(pairs):
    return Pair.from_records(pairs)


def test_it_learns_its_labels(task):
    assert task == Pair(names=("maybe", "no", "yes"))
    assert (task.name, task.record, task.heads) == ("pair", PairRecord, {"sequence": 3})


def test_sequences_are_those_of_the_tokenizer(small, task, pairs):
    examples = task.examples(pairs, small.preprocessing(), labeled=True)
    for row, record in enumerate(pairs):
        result, expected = examples.take([row]).tokens, small.tokenizer.encode(record.first, record.second)
        assert result.ids.tolist() == list(expected.ids)
        assert result.segments.tolist() == list(expected.segments)


def test_a_network_without_segments_gets_none(small, task, pairs):
    config = replace(small.preprocessing().config, segments=0)
    assert task.examples(pairs, Preprocessing(small.tokenizer, config), labeled=True).segments is None


def test_both_texts_are_read_to_their_ends(small, task, longer, pairs):
    record = longer(pairs[1])
    examples = task.examples([record], small.preprocessing(window=40), labeled=True)
    frame = Frame.of(small.tokenizer)
    assert len(examples) > 3
    assert examples.max_length <= 40
    assert examples.by_sequence["weight"].sum() == pytest.approx(1)
    for text, kind in ((record.first, 0), (record.second, 1)):
        shown = set(examples.ids[examples.segments == kind].tolist())
        assert set(small.tokenizer.encode(text, special=False).ids) <= shown
    assert frame.segments == (0, 1)


@pytest.mark.parametrize("kind", ["single", "multi", "number"])
def test_loss_and_gradients_are_those_of_transformers(small, family, kind, pairs, tmp_path):
    labels: dict[str, list[Any]] = {
        "single": ["a", "b", "c", "a", "b"],
        "multi": [("a",), ("a", "b"), (), ("b", "c"), ("c",)],
        "number": [0.5, -1.0, 2.0, 0.0, 4.5],
    }
    records = [replace(pair, label=label) for pair, label in zip(pairs, labels[kind], strict=True)]

    def theirs(model, padded, inputs):
        return model(**padded, labels=inputs["label"]).loss

    small.agree(Pair.from_records(records), records, family, "ForSequenceClassification", tmp_path, theirs)


def test_twenty_steps(small, task, pairs):
    assert small.golden(task, pairs) == pytest.approx(GOLDEN, abs=1e-4)


def test_it_learns_its_sample_by_heart(small, tmp_path):
    """The labels follow nothing that is in the texts, so every pair has to be known."""
    texts = [record.texts[0][1] for record in read(samples.path("messages"))][:40]
    labels = ["yes" if row % 3 else "no" for row in range(40)]
    records = [PairRecord(texts[row], texts[-row], label) for row, label in enumerate(labels)]
    task, result = small.learned(records, "pair", tmp_path, steps=60, batch_size=16)
    assert task.names == ("no", "yes")
    assert result.value >= 0.95


def test_equal_texts_are_tokenized_once(small, pairs, monkeypatch):
    repeated = [*pairs, *(replace(pair, second=pairs[0].second) for pair in pairs)]
    task = Pair.from_records(repeated)
    tokenized = []
    flat_batch = type(small.tokenizer).flat_batch
    monkeypatch.setattr(
        type(small.tokenizer),
        "flat_batch",
        lambda self, texts, **options: tokenized.extend(texts) or flat_batch(self, texts, **options),
    )
    examples = task.examples(repeated, small.preprocessing(), labeled=True)
    assert len(tokenized) == len({pair.first for pair in pairs}) + len({pair.second for pair in pairs})
    for row, record in enumerate(repeated):
        assert examples.take([row]).tokens.ids.tolist() == list(small.tokenizer.encode(record.first, record.second).ids)
