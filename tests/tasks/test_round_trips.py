"""What is to be learned, read back from a network that has learned it perfectly: tags and answers come back whole."""

import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from regard.data.corpus.masking import IGNORE
from regard.data.records import AnswerRecord, TagRecord
from regard.data.records import AnswerSpan as Gold
from regard.model.transformer import Output
from regard.tasks.answer import QuestionAnswering
from regard.tasks.tag import Tag

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
words = st.lists(st.sampled_from(["ab", "Ba", "é", "x😀", "a.b", "-", "bb'b", "ﬁ"]), min_size=1, max_size=25)
NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def answered(task, record, examples, logits):
    """The answer to a record where these are the logits of all its tokens."""
    inputs = examples.take(range(len(examples)))
    return task.answer(record, task.row_outputs(Output(torch.zeros(len(logits), 1), logits), inputs))


@few
@given(words=words, data=st.data(), window=st.integers(6, 20))
def test_tags_to_pieces_to_tags(small, words, data, window):
    kinds = data.draw(st.lists(st.sampled_from(["O", "LOC", "PER"]), min_size=len(words), max_size=len(words)))
    joins = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    tags = []
    for kind, before, join in zip(kinds, ["O", *kinds], joins, strict=False):
        tags.append(kind if kind == "O" else f"{'I' if join and kind == before else 'B'}-{kind}")
    record, task = TagRecord.from_tokens(words, tags), Tag(names=NAMES)
    examples = task.examples([record], small.preprocessing(window=window), labeled=True)
    label = torch.from_numpy(examples.by_token["label"])
    assert int((label != IGNORE).sum()) == len(words)  # each word is learned once, in one window
    answer = answered(task, record, examples, 20.0 * F.one_hot(label.clamp(min=0), len(NAMES)))
    results = [(entity.start, entity.end, entity.label) for entity in answer.entities]
    assert results == [tuple(entity) for entity in record.entities]


@few
@given(words=words, data=st.data(), window=st.integers(24, 40))
def test_answers_to_windows_to_answers(small, words, data, window):
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, min(first + 1, len(words) - 1)))
    start = sum(len(word) + 1 for word in words[:first])
    gold = Gold(" ".join(words[first : last + 1]), start)
    record, task = AnswerRecord("1", " ".join(words), "ab Ba", (gold,)), QuestionAnswering()
    examples = task.examples([record], small.preprocessing(window=window), labeled=True)
    expected = [torch.from_numpy(examples.by_sequence[name]) for name in ("start", "end")]
    assume(bool((expected[0] > 0).any()))  # some window holds the whole answer
    logits = torch.full((len(examples.ids), 2), -20.0)
    for side, places in enumerate(expected):
        logits[torch.from_numpy(examples.bounds[:-1]) + places, side] = 20.0
    answer = answered(task, record, examples, logits)
    content = answer.json()
    assert (content["answer"], content["start"], content["end"]) == (gold.text, start, start + len(gold.text))
    assert answer.windows == len(examples)
