"""The report of a training and the page of a comparison, in a browser."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import no_sideways_scrolling
from tests.report.test_comparison_page import RESULT

import regard
from regard.report.comparison_page import comparison_page

HOSTILE = '<img src="https://example.com/x.png" onerror="window.hacked = 1"><script>window.hacked = 2</script>'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    with (folder / "data.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for number in range(60):
            writer.writerow((f"{HOSTILE} {'x' * 300} soup {number}", ("<b>good</b>", "bad & dull")[number % 2]))
    regard.train(folder / "data.csv", preset="tiny-bert", out=folder / "run", steps=2, device="cpu")
    return folder / "run" / "report.html"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_reports_of_trainings(open_url: OpenPage, report: Path, width: int, dark: bool) -> None:
    page = open_url(report.as_uri(), width=width, dark=dark)
    assert no_sideways_scrolling(page)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, script, b >> text=good").count() == 0
    assert "<b>good</b>" in page.inner_text("body")
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (color == "rgb(17, 20, 26)") is dark


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_pages_of_comparisons(open_url: OpenPage, tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "comparison.html"
    path.write_text(comparison_page(RESULT, name=HOSTILE), encoding="utf-8")
    page = open_url(path.as_uri(), width=width, dark=dark)
    assert no_sideways_scrolling(page)
    assert page.evaluate("window.hacked") is None
    assert page.locator("svg").count() > 0
