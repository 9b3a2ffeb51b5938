"""The documentation site builds without a warning (links, anchors, navigation, names), loads nothing from other hosts,
and leads a new reader to an answer in three clicks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.browser.conftest import CHROMIUM, missing

pytest.importorskip("mkdocs", reason="mkdocs is not installed (extra docs)")
ROOT = Path(__file__).parents[1]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))


def build(folder: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(shared_folder: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    return shared_folder("site", build)


def test_pages_of_all_kinds(site: Path) -> None:
    assert "embed_tokens" in (site / "api.html").read_text(encoding="utf-8")
    assert len(list((site / "lessons").glob("*.html"))) >= 8
    for name in ("tutorial", "howto-entities", "coming-from", "benchmarks", "contributing", "gallery", "families"):
        assert (site / f"{name}.html").exists()


def test_lessons_show_code_and_fold_solutions(site: Path) -> None:
    page = (site / "lessons" / "08-positions.html").read_text(encoding="utf-8")
    assert "sinusoidal" in page
    assert "<summary>Solution</summary>" in page
    assert "<summary>What this page checks</summary>" in page


def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    foreign = set()
    for page in site.rglob("*.html"):
        for tag, attributes in Tags(page).tags:
            address = attributes.get(LOADED.get(tag, ""))
            if address and re.match(r"(https?:)?//", address) and attributes.get("rel") != "canonical":
                foreign.add(address)
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert foreign == set()
    assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*", styles) == []


def links(page: Path) -> Iterator[Path]:
    for tag, attributes in Tags(page).tags:
        address = (attributes.get("href") or "").partition("#")[0]
        if tag == "a" and address.endswith(".html") and "://" not in address:
            yield (page.parent / address).resolve()


def test_every_link_leads_to_a_page(site: Path) -> None:
    pages = {path.resolve() for path in site.rglob("*.html")}
    assert {str(target) for page in pages if page.name != "404.html" for target in links(page)} <= set(map(str, pages))


def test_entities_from_a_csv_in_three_clicks(site: Path) -> None:
    """From the start page, by links in the text, without the navigation."""
    start = (site / "index.html").read_text(encoding="utf-8")
    article = start[start.index("<article") : start.index("</article>")]
    assert 'href="howto.html"' in article
    questions = (site / "howto.html").read_text(encoding="utf-8")
    assert re.search(r'NER.*?on my CSV and serve it.*?href="howto-entities.html"', questions, re.DOTALL)
    page = re.sub(r"<[^>]+>", "", (site / "howto-entities.html").read_text(encoding="utf-8"))
    assert "regard train entities.csv" in page
    assert "regard serve runs/entities" in page


def test_in_a_browser(site: Path) -> None:
    """Search without a server; no page is wider than the screen."""
    if reason := missing():
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator("input.md-search__input").press_sequentially("entities csv")
        first = page.locator(".md-search-result__link").first.get_attribute("href", timeout=60_000)
        wide = []
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            for name in ("index", "howto", "howto-entities", "coming-from", "gallery", "train", "lessons/08-positions"):
                page.goto((site / f"{name}.html").as_uri())
                if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    wide.append((name, width))
        browser.close()
    assert first is not None
    assert "howto-entities.html" in first
    assert [url for url in requests if not url.startswith(("file:", "data:", "about:", "blob:"))] == []
    assert wide == []
