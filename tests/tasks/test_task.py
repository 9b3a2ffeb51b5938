"""Answers: what their attributes are called, and how they are shown."""

from dataclasses import fields, replace

import pytest

from regard.tasks import TASKS, task_class
from regard.tasks.answer import Candidate, SpanAnswer
from regard.tasks.classify import LabelAnswer
from regard.tasks.language import minimal_pairs
from regard.tasks.tag import EntitiesAnswer, TaggedSpan
from regard.tasks.task import Answer, public_fields

SCORING = {"best", "no_answer", "tags", "chances"}  # what only the scoring reads


def every_kind() -> list[type[Answer]]:
    """All kinds of answers there are."""
    for name in TASKS:
        task_class(name)
    assert minimal_pairs.PreferenceAnswer is not None
    results: list[type[Answer]] = []
    waiting = [Answer]
    while waiting:
        kind = waiting.pop()
        results.append(kind)
        waiting += kind.__subclasses__()
    return results


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.__name__)
def test_attributes_are_the_keys_of_the_json_object(kind: type[Answer]) -> None:
    answer = kind()
    own = {one.name for one in fields(answer) if not one.metadata.get("internal")}
    assert set(answer.json()) == own - {"abstained"} == set(public_fields(answer))
    assert set(replace(answer, abstained=True).json()) == own
    assert {one.name for one in fields(answer)} - own <= SCORING
    properties = {name for name, value in vars(type(answer)).items() if isinstance(value, property)}
    assert properties <= {"confidence"}  # which is a score of the answer, by one name for all kinds


def test_the_fields_people_look_for() -> None:
    span = SpanAnswer(2, answer="in May", start=4, end=10, score=0.5, candidates=(Candidate("in May", 4, 10, 0.5),))
    assert (span.answer, span.start, span.end, span.score, span.windows, span.truncated) == (
        *("in May", 4, 10, 0.5),
        *(2, False),
    )
    assert span.json() == {
        "answer": "in May",
        "start": 4,
        "end": 10,
        "score": 0.5,
        "candidates": [{"answer": "in May", "start": 4, "end": 10, "score": 0.5}],
        "truncated": False,
        "windows": 2,
    }


def test_how_answers_are_shown() -> None:
    label = LabelAnswer(label="good", score=0.98765432, scores={"good": 0.98765432, "bad": 0.01234568})
    assert repr(label) == "LabelAnswer(label='good', score=0.9877, scores={'good': 0.9877, 'bad': 0.01235})"
    result = EntitiesAnswer(3, tags=("B-PER", "O"), entities=(TaggedSpan(0, 3, "PER", "Ida", 0.5),))
    assert repr(result) == (
        "EntitiesAnswer(entities=[TaggedSpan(start=0, end=3, label='PER', text='Ida', score=0.5)], windows=3)"
    )


def test_tasks_with_labels_are_those_whose_labels_a_report_checks() -> None:
    assert {name for name, task in TASKS.items() if task.has_labels()} == {"classify", "pair", "tag"}
