"""The HTML report and its plots."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.check.finding import CheckReport, LengthStatistics, Overlap, TrainingEstimate
from regard.data.check.page import html_page
from regard.data.check.plots import MAX_LABELS, bars, escaped, histogram, overlap_bars
from regard.data.check.run import TargetModel, check

EVIL = "<script>alert(1)</script>\"'&"


def body(html: str) -> ElementTree.Element:
    """The page as a tree: it is written so that XML can read it too."""
    return ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))


def forecast(task: str, rows: int, lengths: LengthStatistics, classes: int, split_off: bool) -> TrainingEstimate:
    return TrainingEstimate(f"{EVIL} {task}", 1000, lengths.total_tokens, 10**9, EVIL, 720.0, 2.0, 5, EVIL)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    folder = tmp_path_factory.mktemp("page")
    rows = [f"{n} words and more words here{' too' * (n % 30)},{'ab'[n % 2]}" for n in range(200)]
    (folder / "train.csv").write_text("text,label\n" + "\n".join(rows) + f'\n"{EVIL.replace(chr(34), "")} x",<b>evil\n')
    (folder / "valid.csv").write_text("text,label\n" + "\n".join(rows[:5]) + "\n")
    return check(folder, model=TargetModel(limit=20, forecast=forecast))


def test_page_has_all_parts(report: CheckReport) -> None:
    html = html_page(report, name=EVIL)
    tree = body(html)
    titles = [result.text for result in tree.iter("h2")]
    assert titles == ["Rows per label", "Tokens per row", "Rows in two splits", "Findings", "Estimated training time"]
    assert len(list(tree.iter("svg"))) == 3
    assert "limit of the model: 20" in html
    assert [result.kind in html for result in report.findings] == [True] * len(report.findings)


def test_data_is_escaped_and_nothing_is_requested(report: CheckReport) -> None:
    html = html_page(report, name=EVIL)
    assert "<script" not in html
    assert "<b>evil" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert not re.search(r"(?:src|href)\s*=|@import|url\(|https?:", html)


def test_report_without_findings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nthe sea was calm,a\nit rained all day,b\n")
    assert "No problems found" in html_page(check(tmp_path / "a.csv"), name="a.csv")
    assert body(html_page(CheckReport(0, 0, None, "", {}, ()), name="none")) is not None


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=40), st.text(min_size=1, max_size=30))
def test_any_name_and_label_is_escaped(name: str, label: str) -> None:
    html = html_page(CheckReport(3, 0, "classify", name, {label: 3}, ()), name=name)
    plain = Tags()
    plain.feed(html_page(CheckReport(3, 0, "classify", "x", {"y": 3}, ()), name="z"))
    other = Tags()
    other.feed(html)
    assert other.tags == plain.tags
    body(html)


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
