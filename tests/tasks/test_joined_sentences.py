"""Several sentences of a document in one sequence."""

from dataclasses import replace
from itertools import chain, cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.checkpoint.families import preset
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.records import TagRecord
from regard.data.records.neighbors import with_neighbors
from regard.tasks import joined_sentences
from regard.tasks.joined_sentences import follows_previous
from regard.tasks.tag import Tag, TagAnswer
from regard.text.learn import train_tokenizer_from_texts

NAMES = ("O", "B-LOC", "I-LOC")


def documents(*lengths):
    """Documents of sentences with these numbers of words; every word has a tag of its own kind."""
    words = cycle(f"{letter}{number}" for number in range(9) for letter in "abcdefghij")
    records = [
        TagRecord.from_tokens(
            [next(words) for _ in range(size)],
            [NAMES[min(place % 4, 1)] for place in range(size)],
            document=str(document),
        )
        for document, sizes in enumerate(lengths)
        for size in sizes
    ]
    return list(with_neighbors(records))


@pytest.fixture(scope="module")
def preprocessing():
    text = " ".join(f"{letter}{number}" for number in range(9) for letter in "abcdefghij")
    tokenizer = train_tokenizer_from_texts([text], kind="wordpiece", size=33)  # letters and digits
    return Preprocessing(tokenizer, preset("tiny-bert").config)


@pytest.fixture
def short(monkeypatch):
    """Sequences of at most ten tokens."""
    monkeypatch.setattr(joined_sentences, "JOINED_TOKENS", 10)


def labels(examples, row):
    inputs = examples.take([row])
    return inputs["label"][inputs["label"] != IGNORE].tolist()


def tokens_of(records, preprocessing):
    return [list(preprocessing.tokenizer.encode(record.text, special=False).ids) for record in records]


def test_a_sentence_follows_the_one_before_it_in_its_document():
    records = documents([2, 3, 1], [2, 2])
    assert follows_previous(records).tolist() == [False, True, True, False, True]
    assert follows_previous([records[0], records[2]]).tolist() == [False, False]  # the one between is elsewhere
    assert follows_previous([replace(record, document=None) for record in records]).sum() == 0
    assert follows_previous([]).tolist() == []


def test_every_sentence_is_in_one_sequence_of_each_epoch(preprocessing, short):
    records = documents([1, 2, 1, 1, 2, 1, 12, 1, 1], [2, 1, 1, 1, 1], [1])
    source = Tag(names=NAMES, context=64).joined_source(records, preprocessing, seed=3)
    own = tokens_of(records, preprocessing)
    divisions = set()
    for number in range(20):
        examples = source.epoch(number)
        assert max(examples.lengths) <= source.max_tokens
        inside = [examples.take([row]).tokens.ids.tolist()[1:-1] for row in range(len(examples))]
        assert list(chain(*inside)) == list(chain(*own))
        for sequence in inside:
            assert len(sequence) <= 8 or sequence == own[6]  # a longer sentence is alone
        expected = [NAMES.index(tag) for record in records for tag in record.tags]
        assert list(chain(*(labels(examples, row) for row in range(len(examples))))) == expected
        assert source.epoch_lengths(number).tolist() == examples.lengths.tolist()
        divisions.add(tuple(map(len, inside)))
    assert len(divisions) > 3
    assert source.epoch(5).bounds.tolist() == source.epoch(5).bounds.tolist()


def test_sequences_end_with_their_document(preprocessing):
    records = documents([2, 3], [1, 1])
    examples = Tag(names=NAMES, context=64).joined_examples(records, preprocessing)
    own = tokens_of(records, preprocessing)
    inside = [examples.take([row]).tokens.ids.tolist()[1:-1] for row in range(len(examples))]
    assert inside == [own[0] + own[1], own[2] + own[3]]


@given(
    lengths=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=3),
    window=st.one_of(st.none(), st.integers(8, 20)),
)
def test_outputs_are_those_of_each_sentence(preprocessing, lengths, window):
    """Answers from joined sequences, if the network gave each word its own tag, are the tags of the data."""
    records = documents(*lengths)
    task = Tag(names=NAMES, context=8)
    examples = task.joined_examples(records, replace(preprocessing, window=window))
    outputs = []
    for row in range(len(examples)):
        inputs = examples.take([row])
        at = np.flatnonzero(inputs["word"].numpy() >= 0)
        chances = np.eye(len(NAMES), dtype=np.float32)[inputs["label"].numpy()[at]]
        first, end = (inputs[name].numpy()[at] for name in ("word", "upto"))
        outputs.append(task._decoded(first, end, chances, np.zeros(1, np.int64)))
    by_record = examples.by_record(outputs, len(records))
    for record, own in zip(records, by_record, strict=True):
        answer = task.answer(record, own)
        assert isinstance(answer, TagAnswer)
        assert answer.tags == record.tags
