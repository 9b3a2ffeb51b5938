"""Groups, slices and labels of rows."""

from __future__ import annotations

import numpy as np

from regard.comparison.groups import group_key, row_groups
from regard.comparison.labels import label_mapping, renamed
from regard.comparison.slices import Slices, divide, score_slices
from regard.data.records import AnswerRecord, ClassifyRecord, TranslateRecord
from regard.metrics.confidence import with_ones
from regard.metrics.number_meters import NumberMeter
from regard.metrics.paired.rows import RowScore, RowTable
from regard.tasks.classify import LabelAnswer, LabelsAnswer, NumberAnswer


def test_what_rows_share() -> None:
    assert group_key(ClassifyRecord("a", "x", group="book")) == ("group", "book")
    assert group_key(ClassifyRecord("a", "x")) is None
    assert group_key(TranslateRecord("a house", "ein Haus")) == ("source sentence", "a house")
    assert group_key(AnswerRecord(id="1", context="A man.", question="Who?", answers=None)) == ("paragraph", "A man.")


def test_rows_without_groups_and_groups_of_one_row() -> None:
    assert row_groups([None, None]).numbers is None
    assert row_groups([("group", "a"), ("group", "b")]).numbers is None


def test_groups_are_numbered() -> None:
    groups = row_groups([("group", "a"), None, ("group", "a")])
    assert groups.numbers is not None
    assert groups.numbers.tolist() == [0, 1, 0]
    assert groups.note == "2 groups of rows are resampled as a whole"


def test_few_paragraphs_are_not_resampled_but_mentioned() -> None:
    groups = row_groups([("paragraph", "a"), ("paragraph", "a"), ("paragraph", "b")])
    assert groups.numbers is None
    assert "only 2 paragraphs" in (groups.note or "")


def test_numbers_are_divided_into_four_parts() -> None:
    parts = divide("length", list(range(1, 101)))
    assert sorted(set(parts), key=lambda part: int(part.split()[0])) == [
        "1 to 25 words",
        "26 to 50 words",
        "51 to 75 words",
        "76 to 100 words",
    ]
    assert divide("stars", ["1", "2", "5", "1"]) == ("1", "2", "5", "1")


def test_rare_values_are_put_together() -> None:
    values = [f"common {number % 20}" for number in range(100)] + ["rare one", "rare two"]
    assert divide("author", values)[-2:] == ("other", "other")


def test_scores_of_slices_are_those_of_their_rows() -> None:
    first, second = np.array([1.0, 1, 0, 0, 1, 1]), np.array([1.0, 0, 0, 0, 0, 0])
    tables = {
        name: [RowTable(with_ones(part), {"accuracy": RowScore((0, 1))})]
        for name, part in (("a", first), ("b", second))
    }
    results = score_slices(tables, "accuracy", Slices(("kind",), (("x", "x", "x", "y", "y", "y"),)))
    assert [(one.value, one.rows, one.scores["a"].value, one.scores["b"].value) for one in results] == [
        ("x", 3, 2 / 3, 1 / 3),
        ("y", 3, 2 / 3, 0.0),
    ]
    assert results[0].difference is not None
    assert results[0].difference.value == 1 / 3


def test_equal_models_have_no_difference_in_a_slice() -> None:
    """Both models are resampled on the same rows."""
    right = (np.random.default_rng(0).random(200) < 0.7).astype(float)
    tables = {name: [RowTable(with_ones(right), {"accuracy": RowScore((0, 1))})] for name in "ab"}
    (result,) = score_slices(tables, "accuracy", Slices(("kind",), (("x",) * 200,)))
    assert result.difference is not None
    assert result.difference.low == result.difference.high == 0


def test_spearman_is_replaced_by_pearson() -> None:
    meter = NumberMeter()
    meter.main = "spearman"
    meter.keep_rows()
    meter.add_many(np.arange(40.0), np.arange(40.0))
    (result,) = score_slices({"a": [meter.row_table()]}, "spearman", Slices(("kind",), (("x",) * 40,)))
    assert result.metric == "pearson"


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
