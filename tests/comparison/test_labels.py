"""Labels of models and data."""

from __future__ import annotations

from regard.comparison.labels import label_mapping, renamed
from regard.tasks.classify import LabelAnswer, LabelsAnswer, NumberAnswer


def test_labels_are_mapped_by_name() -> None:
    assert label_mapping(["b", "a"], ["a", "b"], model="m", where="the data") is None
    assert label_mapping(["NEG", "Pos"], ["pos", "neg"], model="m", where="the data") == {"NEG": "neg", "Pos": "pos"}


def test_answers_are_renamed() -> None:
    mapping = {"NEG": "neg", "POS": "pos"}
    answer = renamed(LabelAnswer(label="NEG", score=0.7, scores={"NEG": 0.7, "POS": 0.3}), mapping)
    assert answer == LabelAnswer(label="neg", score=0.7, scores={"neg": 0.7, "pos": 0.3})
    assert renamed(LabelsAnswer(labels=("POS",)), mapping) == LabelsAnswer(labels=("pos",))
    number = NumberAnswer(value=1.0)
    assert renamed(number, mapping) is number
    assert renamed(answer, None) is answer
