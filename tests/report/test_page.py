"""report.html of trainings of every task."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import samples

QUICK: dict[str, Any] = {"device": "cpu", "batch_tokens": 512, "steps": 2}
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
def test_every_task_has_a_page_with_what_applies_to_it(task: str, tmp_path: Path) -> None:
    lines = ["text,label"]
    for number in range(60):
        label = {"multi": f'"{"red|round" if number % 3 else "round"}"', "number": f"{number / 7:.3f}"}.get(task, "x")
        lines.append(f"word {number} and word {number % 5},{label}")
    (tmp_path / "own.csv").write_text("\n".join(lines))
    pairs = [f"one {number},two {number % 3},{'yes' if number % 2 else 'no'}" for number in range(60)]
    (tmp_path / "pair.csv").write_text("\n".join(["sentence1,sentence2,label", *pairs]))
    (tmp_path / "embed.csv").write_text(
        "\n".join(["sentence1,sentence2", *(",".join(line.split(",")[:2]) for line in pairs)])
    )
    data = {
        "classify": samples.path("messages"),
        "answer": samples.path("questions"),
        "tag": samples.path("places"),
        "translate": samples.path("english-spanish"),
        "pair": tmp_path / "pair.csv",
        "embed": tmp_path / "embed.csv",
    }.get(task, tmp_path / "own.csv")
    name = "classify" if task in ("multi", "number") else task
    labels = {"multi": "multi", "number": "number"}.get(task)
    preset = "tiny-t5" if task == "translate" else "tiny-bert"
    regard.train(data, out=tmp_path / "run", task=name, labels=labels, preset=preset, **QUICK)
    page = checked(tmp_path / "run")
    titles = headings(page)
    assert {"Scores", "Loss", "How to use it", "Data and environment", "Settings"} <= set(titles)
    assert ("Confusion matrix" in titles) == (task in ("classify", "pair", "tag", "answer"))
    assert ("Calibration" in titles) == (task in ("classify", "multi", "pair", "answer", "tag"))
    assert ("Abstaining" in titles) == (task in ("classify", "multi", "pair", "answer"))
    assert ("Predicted over true numbers" in titles) == (task == "number")


def test_a_pretraining_has_a_page(tmp_path: Path) -> None:
    regard.pretrain([samples.path("corpus")], out=tmp_path / "run", objective="mlm", preset="tiny-bert", **QUICK)
    assert {"Scores", "Loss", "Settings"} <= set(headings(checked(tmp_path / "run")))


def test_a_training_without_validation_rows_says_so(tmp_path: Path) -> None:
    regard.train(samples.path("messages"), out=tmp_path / "run", preset="tiny-bert", dev_fraction=0.0, **QUICK)
    page = checked(tmp_path / "run")
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


def test_a_baseline_that_is_fitted_at_once_has_no_curves(tmp_path: Path) -> None:
    regard.train(samples.path("messages"), out=tmp_path / "run", preset="ngram")
    page = checked(tmp_path / "run")
    assert "Loss" not in headings(page)
    assert "0 steps" not in page
