"""Plots are well-formed SVG with all values."""

from __future__ import annotations

from xml.etree import ElementTree

from regard.data.check.finding import LengthStatistics, Overlap
from regard.data.check.plots import MAX_LABELS, bars, escaped, histogram, overlap_bars


def lengths(limit: int | None) -> LengthStatistics:
    return LengthStatistics("tokens", 6, 100, 16.0, 15, 25, 30, limit, 0.5, (0, 10, 20, 30), (1, 2, 3))


def test_bars_show_counts_and_join_rare_labels() -> None:
    svg = bars({f"label {number}": 100 - number for number in range(MAX_LABELS + 5)})
    tree = ElementTree.fromstring(svg)
    assert len(tree.findall("rect")) == MAX_LABELS + 1
    assert "5 others" in svg


def test_histogram_marks_the_limit() -> None:
    assert len(ElementTree.fromstring(histogram(lengths(None))).findall("rect")) == 3
    assert "limit of the model: 20" in histogram(lengths(20))
    assert 'class="bar over"' in histogram(lengths(20))
    assert "limit of the model" not in histogram(lengths(500))


def test_overlap_bars_name_both_splits() -> None:
    svg = overlap_bars((Overlap("train", "valid", 2, 1, 10),))
    assert "valid in train" in svg
    assert "2 identical, 1 similar, of 10" in svg
    ElementTree.fromstring(svg)


def test_escaped_text_is_valid_in_a_page() -> None:
    assert escaped('<b>"\x00') == "&lt;b&gt;&quot;\ufffd"
