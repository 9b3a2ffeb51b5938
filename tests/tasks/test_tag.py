"""Tags of words."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers

from regard import samples
from regard.data.corpus.masking import IGNORE
from regard.data.readers import read
from regard.data.records import Entity, TagRecord
from regard.data.records.neighbors import with_neighbors
from regard.errors import InputError
from regard.export.int8_encoder import open_int8_encoder
from regard.metrics.meter import EntityMeter, TokenMeter
from regard.tasks.tag import EntitiesAnswer, Tag
from regard.tasks.tag_sequences import word_columns
from regard.tasks.task import RowOutputs
from regard.text.tokenizer import Tokenizer

GOLDEN = [1.60347, 1.18357, 1.21873, 1.39362, 1.22096, 1.19168, 1.44331, 1.15664, 0.47894, 0.36046]
GOLDEN += [0.4151, 0.2744, 0.1271, 0.08191, 0.09653, 0.06919, 0.05496, 0.04265, 0.0506, 0.04317]
NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.fixture
def task(tagged):
    return Tag.from_records(tagged)


def window_tags(task, *tags, first=0):
    """A window with these tags of its words, in order, with the probabilities 0.9, 0.8, … down to 0.5."""
    words = list(range(first, first + len(tags)))
    numbers = [task.names.index(tag) for tag in tags]
    chances = [max(0.9 - 0.1 * place, 0.5) for place in range(len(tags))]
    return window_of(task, words, [word + 1 for word in words], numbers, chances)


def window_of(task, first, end, numbers, chances, *, second=None):
    """A window with these probabilities of these tags; the other tags share the rest.

    second: probabilities of further tags, by word and tag.
    """
    probabilities = np.repeat((1 - np.array(chances)[:, None]) / len(task.names), len(task.names), 1)
    probabilities[range(len(numbers)), numbers] = chances
    for place, chance in (second or {}).items():
        probabilities[place] = chance
    return task._decoded(np.array(first), np.array(end), probabilities.astype(np.float32), np.zeros(1, np.int64))


def test_it_learns_its_tags(task):
    assert task == Tag(names=NAMES)
    assert task.iob
    assert task.heads == {"token": 5}
    assert isinstance(task.meter(), EntityMeter)


def test_of_an_entity_both_tags_are_known():
    task = Tag.from_records([TagRecord.from_tokens(["Rome"], ["B-LOC"])])
    assert task.names == ("O", "B-LOC", "I-LOC")


def test_parts_of_speech_are_counted_by_the_word():
    task = Tag.from_records([TagRecord.from_tokens(["it", "rains"], ["PRON", "VERB"], scheme="plain")])
    assert task.names == ("PRON", "VERB")
    assert not task.iob
    assert isinstance(task.meter(), TokenMeter)


def test_weights_are_the_inverse_of_how_often_a_tag_is_seen(tagged):
    task = Tag.from_records(tagged, class_balance="weights", label_smoothing=0.1)
    counts = {name: sum(record.tags.count(name) for record in tagged) for name in NAMES}
    expected = [sum(counts.values()) / (5 * counts[name]) for name in NAMES]
    assert task.weights == pytest.approx(expected)
    assert task.label_smoothing == 0.1


def test_the_first_piece_of_a_word_carries_its_tag(small, task, tagged):
    examples = task.examples(tagged[:1], small.preprocessing(), labeled=True)
    result = small.tokenizer.encode(tagged[0].text)
    before = [None, *result.word_ids]
    for place, word in enumerate(result.word_ids):
        first = word is not None and word != before[place]
        expected = NAMES.index(tagged[0].tags[word]) if first else IGNORE
        assert examples.by_token["label"][place] == expected


def test_words_in_one_piece_are_one_entity():
    backend = tokenizers.Tokenizer(models.WordLevel({"U.S.": 0, "in": 1, "[UNK]": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    result = Tokenizer(backend).encode("in U.S.", special=False)
    record = TagRecord.from_text("in U.S.")
    columns = word_columns(record.spans, result.offsets)
    assert (columns["word"].tolist(), columns["upto"].tolist()) == ([0, 1], [1, 5])
    task = Tag(names=NAMES)
    window = window_of(task, columns["word"], columns["upto"], [0, 1], [0.9, 0.8])
    answer = task.answer(record, [window])
    assert isinstance(answer, EntitiesAnswer)
    assert [tuple(one)[:4] for one in answer.entities] == [(3, 7, "LOC", "U.S.")]


def test_words_without_a_piece_are_none(task):
    record = TagRecord.from_tokens(["Anna", "\u200b", "Berg"], None)
    free = replace(task, constrained=False)
    assert free.answer(record, [window_of(free, [0, 2], [1, 3], [3, 4], [0.9, 0.7])]).tags == ("B-PER", "O", "I-PER")
    answer = task.answer(record, [window_of(task, [0, 2], [1, 3], [3, 4], [0.9, 0.7], second={(1, 3): 0.2})])
    assert answer.tags == ("B-PER", "O", "B-PER")
    assert [(one.label, one.text) for one in answer.entities] == [("PER", "Anna"), ("PER", "Berg")]


def test_entities_are_whole_words_with_their_mean_probability(task):
    record = TagRecord.from_tokens(["Anna", "Berg", "in", "New", "York"], None)
    answer = task.answer(record, [window_tags(task, "B-PER", "I-PER", "O", "B-LOC", "I-LOC")])
    first, second = answer.entities
    assert first == (0, 9, "PER", "Anna Berg", pytest.approx(0.85))
    assert second == (13, 21, "LOC", "New York", pytest.approx(0.55))
    assert answer.json()["entities"][0]["text"] == "Anna Berg"
    assert set(answer.json()) == {"entities", "truncated", "windows"}


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["I-PER", "I-PER"], ["PER Anna Berg"]),
        (["I-PER", "I-LOC"], ["PER Anna", "LOC Berg"]),
        (["O", "I-LOC"], ["LOC Berg"]),
        (["B-PER", "B-PER"], ["PER Anna", "PER Berg"]),
        (["B-PER", "I-LOC"], ["PER Anna", "LOC Berg"]),
    ],
)
def test_broken_tags_are_fixed_as_conlleval_reads_them(task, tags, expected):
    record = TagRecord.from_tokens(["Anna", "Berg"], None)
    task = replace(task, constrained=False)
    answer = task.answer(record, [window_tags(task, *tags)])
    assert [f"{one.label} {one.text}" for one in answer.entities] == expected
    assert answer.tags == tuple(tags)  # what is scored strictly


def test_windows_are_put_together_word_by_word(task):
    record = TagRecord.from_tokens(["in", "New", "York"], None)
    answer = task.answer(record, [window_tags(task, "O", "B-LOC"), window_tags(task, "I-LOC", first=2)])
    assert [one.text for one in answer.entities] == ["New York"]
    assert answer.windows == 2


def test_impossible_tags_are_replaced_by_the_most_likely_possible_ones(task):
    record = TagRecord.from_tokens(["Anna", "Berg"], None)
    window = window_of(task, [0, 1], [1, 2], [0, 4], [0.5, 0.8], second={(0, 3): 0.3})  # O or B-PER, then I-PER
    answer = task.answer(record, [window])
    assert answer.tags == ("B-PER", "I-PER")
    assert answer.entities[0].score == pytest.approx(0.55)


def test_constraints_hold_across_windows(task):
    record = TagRecord.from_tokens(["in", "New", "York"], None)
    answer = task.answer(record, [window_tags(task, "O", "B-LOC"), window_tags(task, "I-PER", first=2)])
    assert answer.tags == ("O", "B-PER", "I-PER")


def test_a_model_from_elsewhere_is_not_constrained(small, task):
    head = small.network(task).heads["token"]
    assert not Tag.from_head(head, labels=NAMES, problem_type=None).constrained


def documents():
    """Two documents of three sentences each, in IOB2."""
    texts = ["Anna went to Paris", "it rained", "the fox sleeps in Rome", "Zoë wrote", "Mr Jones jumps", "how odd"]
    tags = ["B-PER O O B-LOC", "O O", "O O O O B-LOC", "B-PER O", "B-PER I-PER O", "O O"]
    records = [
        TagRecord.from_tokens(text.split(), tag.split(), document=str(number // 3))
        for number, (text, tag) in enumerate(zip(texts, tags, strict=True))
    ]
    return list(with_neighbors(records))


def test_context_is_the_default_where_documents_are_known(tagged):
    assert Tag.from_records(documents()).context == 64
    assert Tag.from_records(documents(), context=10).context == 10
    assert Tag.from_records(documents(), context=0).notes == ()
    assert Tag.from_records(tagged).context == 0
    with pytest.raises(InputError, match="documents of the sentences are not known"):
        Tag.from_records(tagged, context=64)
    with pytest.raises(InputError, match="context is 600, expected at most 512 tokens"):
        Tag.from_records(documents(), context=600)


def test_context_tokens_are_neither_learned_nor_tagged(small):
    records = documents()
    task = Tag.from_records(records, context=6)
    encode = small.tokenizer.encode
    examples = task.examples(records, small.preprocessing(), labeled=True)
    alone = replace(task, context=0).examples(records, small.preprocessing(), labeled=True)
    assert len(examples) == len(records)
    for row, record in enumerate(records):
        left = [token for text in record.left_context for token in encode(text, special=False).ids][-3:]
        right = [token for text in record.right_context for token in encode(text, special=False).ids][:3]
        start, *own, end = encode(record.text).ids
        inputs = examples.take([row])
        assert inputs.tokens.ids.tolist() == [start, *left, *own, *right, end]
        inside = slice(1 + len(left), 1 + len(left) + len(own))
        for name in ("word", "upto", "label"):
            assert inputs[name][inside].tolist() == alone.take([row])[name][1:-1].tolist()
            assert (inputs[name] != IGNORE).sum() == (alone.take([row])[name] != IGNORE).sum()
    assert records[3].left_context == ()  # of another document


def test_context_is_what_fits_in_a_window(small):
    records = documents()
    task = Tag.from_records(records)
    free = replace(task, context=0).examples(records, small.preprocessing(), labeled=False).lengths
    for window in range(8, 40):
        lengths = task.examples(records, small.preprocessing(window=window), labeled=False).lengths
        assert max(lengths) <= window
        assert len(lengths) > len(records) or (lengths >= free).all()
    alone = replace(task, context=0)
    for records_alone in (records, [replace(record, left_context=(), right_context=()) for record in records]):
        result = task if records_alone is not records else alone
        same = result.examples(records_alone, small.preprocessing(), labeled=False)
        assert same.ids.tolist() == alone.examples(records, small.preprocessing(), labeled=False).ids.tolist()


def test_answers_do_not_depend_on_the_other_records(small):
    records = documents()
    task = Tag.from_records(records)
    network = small.spread(task)
    together = small.answers(task, network, records)
    for record, answer in zip(records, together, strict=True):
        (single,) = small.answers(task, network, [record])
        assert single.tags == answer.tags
        assert [entity.score for entity in single.entities] == pytest.approx([one.score for one in answer.entities])
        for entity in answer.entities:
            assert record.text[entity.start : entity.end] == entity.text
    alone = small.answers(replace(task, context=0), network, records)
    assert [answer.tags for answer in alone] != [answer.tags for answer in together]


def test_int8_computes_the_first_token_of_each_word_alone(small, monkeypatch):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    records = documents()
    task = Tag.from_records(records)
    network = small.network(task)
    assert small.golden(task, records, network=network, steps=40)[-1] < 0.1
    opened = open_int8_encoder(network)
    some = small.answers(task, opened, records)
    monkeypatch.setattr(opened, "can_skip_tokens", False)
    for answer, whole in zip(some, small.answers(task, opened, records), strict=True):
        assert answer.tags == whole.tags
        assert answer.chances == pytest.approx(whole.chances, abs=0.03)
    assert [answer.tags for answer in some] == [answer.tags for answer in small.answers(task, network, records)]


def test_settings_come_back_with_context_and_constraints():
    task = replace(Tag.from_records(documents(), context=20), constrained=False)
    assert Tag.from_settings(json.loads(json.dumps(task.settings()))) == task
    old = {name: value for name, value in task.settings().items() if name not in ("context", "constrained")}
    assert Tag.from_settings(old) == replace(task, context=0, constrained=True)


def tagged_rows(task, count=200):
    """Rows of two words that are tagged with probability 0.98, and right in four of five."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        numbers = rng.integers(0, len(task.names), 2)
        gold = np.where(rng.random(2) < 0.8, numbers, (numbers + 1) % len(task.names))
        record = TagRecord.from_tokens(["Anna", "Berg"], [task.names[number] for number in gold], scheme="plain")
        yield RowOutputs(record, [window_of(task, [0, 1], [1, 2], numbers.tolist(), [0.98, 0.98])])


def test_the_temperature_makes_probabilities_as_large_as_tags_are_right():
    task = Tag(names=("A", "B", "C"))
    rows = list(tagged_rows(task))
    tuned = task.tuned(task.meter(), rows)
    assert tuned.temperature > 1.5
    both: list[list[Any]] = [[one.answer(row.record, row.outputs) for row in rows] for one in (task, tuned)]
    before, after = both
    assert [answer.tags for answer in after] == [answer.tags for answer in before]
    assert np.mean([answer.chances for answer in after]) == pytest.approx(0.8, abs=0.05)
    assert Tag.from_settings(json.loads(json.dumps(tuned.settings()))) == tuned
    assert task.tuned(task.meter(), rows[:20]) == task  # too few


def test_entities_are_the_same_with_any_temperature(task):
    """Constraints included: all scores of sequences are divided by it."""
    record = TagRecord.from_tokens(["Anna", "Berg"], None)
    window = window_of(task, [0, 1], [1, 2], [0, 0], [0.5, 0.5], second={(1, task.names.index("I-PER")): 0.45})
    answers = [replace(task, temperature=one).answer(record, [window]) for one in (0.3, 1.0, 5.0)]
    assert len({answer.tags for answer in answers}) == 1
    assert answers[0].confidence > answers[1].confidence > answers[2].confidence


def test_every_word_is_learned_in_one_window(small, task, longer, tagged):
    record = longer(tagged[0])
    examples = task.examples([record], small.preprocessing(window=20), labeled=True)
    words = examples.by_token["word"][examples.by_token["word"] >= 0]
    assert words.tolist() == list(range(len(record.spans)))
    labels = examples.by_token["label"][examples.by_token["word"] >= 0]
    assert [NAMES[label] for label in labels] == list(record.tags)
    assert (examples.by_token["label"] != IGNORE).sum() == len(record.spans)


def test_character_spans_come_back(small, task):
    record = TagRecord.from_entities("Zoë's trip to New York (May).", [Entity(0, 3, "PER"), Entity(14, 22, "LOC")])
    assert record.tags is not None
    answer = task.answer(record, [window_tags(task, *record.tags)])
    assert [tuple(one)[:3] for one in answer.entities] == [tuple(one) for one in record.entities]


def test_loss_and_gradients_are_those_of_transformers(small, family, task, tagged, tmp_path):
    def theirs(model, padded, inputs):
        return model(**padded).loss

    small.agree(task, tagged, family, "ForTokenClassification", tmp_path, theirs)


def test_weights_and_smoothing_are_those_of_torch(small, tagged, tmp_path):
    task = Tag.from_records(tagged, class_balance="weights", label_smoothing=0.2)

    def theirs(model, padded, inputs):
        labels = padded.pop("labels")
        loss = torch.nn.CrossEntropyLoss(weight=torch.tensor(task.weights), label_smoothing=0.2)
        return loss(model(**padded).logits.flatten(0, 1), labels.flatten())

    small.agree(task, tagged, "bert", "ForTokenClassification", tmp_path, theirs)


def test_twenty_steps(small, task, tagged):
    assert small.golden(task, tagged) == pytest.approx(GOLDEN, abs=1e-4)


def test_it_learns_its_sample_by_heart(small, tmp_path):
    records = list(read(samples.path("places")))[:60]
    task, result = small.learned(records, "tag", tmp_path, size=400, steps=100, batch_size=16, lr=1e-2)
    assert len(task.names) == 9
    assert result.main == "f1"
    assert result.scores["f1"].value >= 0.85
    assert result.scores["f1_strict"].value >= 0.85


def test_parts_of_speech_are_learned(small, tmp_path):
    rows = [("the dog sleeps", "DET NOUN VERB"), ("a fox jumps", "DET NOUN VERB"), ("it sleeps", "PRON VERB")]
    records = [TagRecord.from_tokens(text.split(), tags.split(), scheme="plain") for text, tags in rows * 4]
    task, result = small.learned(records, "tag", tmp_path, size=40, steps=40)
    assert task.names == ("DET", "NOUN", "PRON", "VERB")
    assert result.scores["accuracy"].value == 1.0
