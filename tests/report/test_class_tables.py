"""The confusion matrix and the table of classes."""

from __future__ import annotations

from regard.metrics.label_meters import LabelMeter, MultiLabelMeter
from regard.metrics.report import ClassificationReport
from regard.report.class_tables import class_card, confusion_card


def test_small_matrices_are_drawn_and_large_ones_listed() -> None:
    small = LabelMeter(["a", "b"])
    for ours, theirs in (("a", "a"), ("b", "b"), ("a", "b")):
        small.add(ours, theirs)
    page = confusion_card(small.report())
    assert page.count("<td") == 4
    assert '<td class="zero">·</td>' in page
    names = [f"class{number}" for number in range(80)]
    large = LabelMeter(names)
    for number, name in enumerate(names):
        large.add(names[(number + 1) % 80], name)
    assert "Most confused classes" in confusion_card(large.report())
    assert "The 60 of 80 with the lowest F1." in class_card(large.report())


def test_several_labels_have_counts_and_no_matrix() -> None:
    meter = MultiLabelMeter(["red", "round"])
    meter.add(["red"], ["red", "round"])
    assert confusion_card(meter.report()) == ""
    assert "predicted wrongly" in class_card(meter.report())


def test_a_task_without_classes_has_neither() -> None:
    assert confusion_card(ClassificationReport()) == class_card(ClassificationReport()) == ""
