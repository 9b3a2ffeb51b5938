"""Building blocks of pages."""

from __future__ import annotations

import math
import re

from regard.checkpoint.families import FAMILIES
from regard.metrics.confidence import Score
from regard.metrics.label_meters import LabelMeter, MultiLabelMeter
from regard.metrics.report import ClassificationReport
from regard.report.class_tables import class_card, confusion_card
from regard.report.elements import (
    card,
    code,
    example,
    folded,
    grid,
    html_page,
    key_values,
    score_table,
    shortened,
    table,
)
from regard.report.facts import RunFacts
from regard.report.row_facts import RowExample
from regard.report.style import STYLE

BAD = '<b>&"'


def test_every_element_escapes_its_texts() -> None:
    one = RowExample("file <x>", (("text", BAD), ("other", BAD)), target=BAD, answer=BAD, confidence=0.5, suggested=BAD)
    page = html_page(BAD, card(BAD, key_values({BAD: BAD}) + code(BAD) + example(one) + folded(BAD, "x"), note=BAD))
    assert "<b>" not in page
    assert page.count("&lt;b&gt;&amp;&quot;") == 11


def test_elements_without_content_are_left_out() -> None:
    assert card("title", "") == ""
    assert grid(["", ""]) == ""
    assert folded("more", "") == ""
    assert table(["a"], []) == ""
    assert key_values({"a": None, "b": ""}) == ""
    assert score_table(["score"], []) == ""


def test_scores_share_a_scale() -> None:
    scores = [(("a",), Score(0.9, 0.8, 0.95)), (("b",), Score(math.nan, math.nan, math.nan))]
    assert "0.5 to 1" in score_table(["score"], scores)
    assert "0 to 1" in score_table(["score"], [*scores, (("c",), Score(0.2, 0.1, 0.3))])
    assert "-2 to 30" in score_table(["score"], [(("c",), Score(3.0, -2.0, 30.0))])


def test_scores_on_another_scale_have_no_bar() -> None:
    scores = [(("pearson",), Score(0.3, -0.1, 0.5)), (("mse",), Score(3.0, 2.0, 30.0))]
    content = score_table(["score"], scores, without_bar=[1])
    assert "-0.1 to 0.5" in content
    assert content.count("<svg") == score_table(["score"], scores[:1]).count("<svg") == 1


def test_long_texts_are_shortened() -> None:
    assert shortened("x" * 700).endswith("x…")
    assert len(shortened("x" * 700)) == 600


def test_every_color_has_a_dark_one_and_nothing_is_loaded() -> None:
    light, dark = (set(re.findall(r"(--\w+):", block)) for block in STYLE.split("prefers-color-scheme: dark", 1))
    assert {name for name in light if name not in ("--c", "--v")} <= dark
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert STYLE.count("{") == STYLE.count("}")


RUN = {
    "task": "classify",
    "task_settings": {"kind": "single", "labels": ["a", "b"], "temperature": 2.0},
    "start": "minilm",
    "pretrained": True,
}


def test_titles_tasks_and_baselines() -> None:
    meter = LabelMeter(["a", "b"])
    for label in ("a", "a", "b"):
        meter.add("a", label)
    facts = RunFacts(RUN, FAMILIES["bert"], 10, report=meter.report())
    assert facts.title == "BERT text classifier, fine-tuned from minilm"
    assert facts.tuned_task.settings()["temperature"] == 2.0
    assert facts.opens_in_transformers
    assert facts.baseline == ("a", 2 / 3)
    assert RunFacts(RUN, FAMILIES["bert"], 10).baseline is None
    scratch = RunFacts({**RUN, "pretrained": False}, FAMILIES["bert"], 10)
    assert scratch.title == "BERT text classifier, trained from scratch (minilm)"


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
