"""report.html of trainings of every task."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import QUICK

import regard
from regard import samples

VOID = {"meta"}


class Checker(HTMLParser):
    """Tags that are opened and closed in order, and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(folder: Path) -> str:
    """The page, after a check that it is well formed and loads nothing."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.tags.isdisjoint({"script", "link", "iframe", "img", "object"})
    for tag, name, value in checker.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "srcset", "data"), (tag, name)
        assert name != "href" or value.startswith("#"), value
    assert "url(" not in page
    assert "@import" not in page
    return page


def headings(page: str) -> list[str]:
    return re.findall("<h2>(.*?)</h2>", page)


@pytest.mark.parametrize("task", ["classify", "multi", "number", "pair", "answer", "tag", "embed", "translate"])
def test_every_task_has_a_page_with_what_applies_to_it(task: str, trained_task: Callable[[str], Path]) -> None:
    page = checked(trained_task(task))
    titles = headings(page)
    assert {"Scores", "Loss", "How to use it", "Data and environment", "Settings"} <= set(titles)
    assert ("Confusion matrix" in titles) == (task in ("classify", "pair", "tag", "answer"))
    assert ("Calibration" in titles) == (task in ("classify", "multi", "pair", "answer", "tag"))
    assert ("Abstaining" in titles) == (task in ("classify", "multi", "pair", "answer"))
    assert ("Predicted over true numbers" in titles) == (task == "number")


def test_a_pretraining_has_a_page(pretrained_folder: Any) -> None:
    folder = pretrained_folder([samples.path("corpus")], objective="mlm+nsp", preset="tiny-bert", **QUICK)
    assert {"Scores", "Loss", "Settings"} <= set(headings(checked(folder)))


def test_a_training_without_validation_rows_says_so(trained_folder: Any) -> None:
    page = checked(trained_folder(samples.path("messages"), preset="tiny-bert", dev_fraction=0.0, **QUICK))
    assert "There were no validation rows" in page
    assert "Mistakes" not in headings(page)


def test_text_from_the_data_is_escaped(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script> & \"quotes\" <b onclick='x'>"
    rows = [{"text": f"{bad} {number}", "label": f"<i>{'one' if number % 2 else 'two'}</i>"} for number in range(80)]
    regard.train(rows, out=tmp_path / "<run>", preset="tiny-bert", **QUICK)
    page = checked(tmp_path / "<run>")
    assert "<script" not in page
    assert "<i>one" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;i&gt;one&lt;/i&gt;" in page


def test_mistakes_name_their_rows_and_many_classes_are_listed(tmp_path: Path) -> None:
    rows = ["text,label", *(f"text {number} of {number % 30},class{number % 30}" for number in range(300))]
    (tmp_path / "many.csv").write_text("\n".join(rows))
    regard.train(tmp_path / "many.csv", out=tmp_path / "run", preset="tiny-bert", **QUICK)
    page = checked(tmp_path / "run")
    assert "Most confused classes" in headings(page)
    assert re.search(r"many\.csv line \d+", page)


def test_a_baseline_that_is_fitted_at_once_has_no_curves(trained_folder: Any) -> None:
    page = checked(trained_folder(samples.path("messages"), preset="ngram"))
    assert "Loss" not in headings(page)
    assert "0 steps" not in page
