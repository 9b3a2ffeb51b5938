"""Every view of every kind of model: what is drawn are the numbers of the API.

Each test opens one model, with a second one beside it, and clicks through all views.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, no_sideways_scrolling, ready
from tests.look.models import KINDS, TEXT
from tests.text.vocabulary_files import minilm

import regard
from regard import samples
from regard.look.jobs import copy_of
from regard.look.views import data_set
from regard.look.views.arrays import unpacked
from regard.predict import Model

QUICK: dict[str, Any] = {"preset": "tiny-bert", "steps": 2, "device": "cpu", "batch_tokens": 512}
SENTENCES = "the film was warm\na dull film"


class Opened(NamedTuple):
    """A page of one kind of model."""

    page: Any
    kind: str
    text: str
    pair: str | None
    target: str | None

    def api(self, view: str, **values: Any) -> dict[str, Any]:
        return api_answer(self.page, view, **{"text": self.text, "pair": self.pair, "target": self.target, **values})

    def drawn(self, selector: str, value: str) -> list[Any]:
        drawn: list[Any] = self.page.eval_on_selector_all(selector, f"all => all.map(e => {value})")
        return drawn

    @property
    def words(self) -> str:
        words: str = self.page.inner_text("main")
        return words

    @property
    def parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = self.api("read")["parts"]
        return parts

    @property
    def has_heads(self) -> bool:
        return self.kind != "gru"


def numbers(expected: Any) -> Any:
    return pytest.approx(expected, abs=2e-5)


def heads(opened: Opened) -> None:
    for part in opened.parts:
        if len(opened.parts) > 1 and opened.page.input_value("[aria-label=Attention]") != part["name"]:
            ready(opened.page, lambda name=part["name"]: opened.page.select_option("[aria-label=Attention]", name))
        layer = int(opened.page.input_value("[aria-label=Layer]")) if part["layers"] > 1 else 1
        answer = opened.api("map", part=part["name"], layer=layer, heads=[0])
        weights = unpacked(answer["weights"])[0]
        lines = opened.drawn(".lines path", "[+e.dataset.query, +e.dataset.key, +e.dataset.weight]")
        assert lines
        assert [weight for *_, weight in lines] == numbers([float(weights[query, key]) for query, key, _ in lines])
        maps_and_grid(opened, part, weights)
        if part["name"] == opened.parts[0]["name"] and opened.has_heads:
            pair_of_tokens(opened, part, layer)
    if len(opened.parts) > 1:
        ready(opened.page, lambda: opened.page.select_option("[aria-label=Attention]", opened.parts[0]["name"]))


def pair_of_tokens(opened: Opened, part: dict[str, Any], layer: int) -> None:
    page = opened.page
    ready(page, lambda: page.click('[aria-label="Queries"] .token >> nth=1'))
    ready(page, lambda: page.click(".strongest .token >> nth=0"))
    key = opened.drawn(".strongest .token", "+e.dataset.key")[0]
    answer = opened.api("pair", part=part["name"], layer=layer, head=0, query=1, key=key)
    assert opened.drawn(".products rect", "+e.dataset.product") == numbers(answer["products"])


def maps_and_grid(opened: Opened, part: dict[str, Any], weights: torch.Tensor) -> None:
    page = opened.page
    ready(page, lambda: page.click("text=Heat map"))
    page.focus("canvas.map")
    page.keyboard.press("ArrowDown")
    weight = page.inner_text("#status").rpartition(": ")[2]
    assert float(weight) == pytest.approx(float(weights[1, 0]), abs=6e-4)
    ready(page, lambda: page.click("text=All heads"))
    largest = [value for row in opened.api("grid", part=part["name"])["largest"] for value in row]
    assert opened.drawn(".thumb", "+e.dataset.largest") == numbers(largest)
    ready(page, lambda: page.click("text=Lines"))


def steps(opened: Opened) -> None:
    if not opened.has_heads:
        assert "Heads shows it" in opened.words
        return
    part = opened.parts[0]
    layer = int(opened.page.input_value("[aria-label=Layer]"))
    answer = opened.api("steps", part=part["name"], layer=layer, head=0, token=1)
    assert opened.drawn(".scores [data-weight]", "+e.dataset.weight") == numbers(answer["weights"])
    assert opened.drawn(".scores [data-dot]", "+e.dataset.dot") == numbers(answer["dots"])


def why(opened: Opened) -> None:
    opened.page.wait_for_selector(".view-why[data-done]", timeout=30_000)
    assert "not an explanation" in opened.words
    fitting = [method["name"] for method in opened.api("methods")["methods"] if not method["why_not"]]
    assert opened.drawn("[data-method]", "e.dataset.method") == fitting
    falls = {}
    for name in fitting:
        if opened.kind == "minilm" and name not in ("decomposition", "occlusion"):
            continue  # it is slow
        answer = opened.api("explain", method=name)
        known = {(word["text"], round(word["score"], 4)) for word in answer["words"]}
        words = opened.drawn(f"[data-method={name}] .word", "[e.textContent, +e.dataset.score]")
        assert words
        assert {(word, round(score, 4)) for word, score in words} <= known
        falls[name] = answer["faithfulness"]["comprehensiveness"]
    rows = opened.drawn("[data-row]:not([data-row='random order']) [data-value]", "+e.dataset.value")
    assert len(rows) == len(fitting)
    for value in falls.values():
        assert any(row == numbers(value) for row in rows)
    worst, best = opened.api("limits")["limits"]
    worst, best = min(worst, *rows), max(best, *rows)
    expected = [(row - worst) / (best - worst) for row in rows] if best - worst > 1e-9 else []
    selector = "[data-row]:not([data-row='random order']) [data-normalized]"
    assert opened.drawn(selector, "+e.dataset.normalized") == pytest.approx(expected, abs=1e-3)


def lens(opened: Opened) -> None:
    drawn = sorted(opened.drawn(".lens .cell", "+e.dataset.value"))
    if opened.kind in ("minilm", "gru"):
        assert "instead" in opened.words
        return
    answer = opened.api("lens")
    if answer["kind"] == "words":
        expected = [words[0]["probability"] for row in answer["words"] for words in row]
    elif answer["kind"] == "classes":
        expected = [value for row in answer["probabilities"] for value in row]
    elif answer["kind"] == "tags":
        expected = [max(tags) for row in answer["probabilities"] for tags in row]
    else:
        expected = [value for row in answer["probabilities"] for both in row for value in both]
    assert drawn == numbers(sorted(expected))


def whatif(opened: Opened) -> None:
    page = opened.page
    places = opened.drawn(".tokens .token", "e.textContent")
    ready(page, lambda: page.click(f".tokens .token >> nth={min(2, len(places) - 1)}"))
    ready(page, lambda: page.click("button:text-is('Delete')"))
    changed = page.input_value("[aria-label='Changed text']")
    assert changed != opened.text
    off: dict[str, Any] = {}
    if opened.has_heads:
        ready(page, lambda: page.click("[aria-label='layer 1, head 0']"))
        off = {"off": [[1, 0]]}
        off |= {"off_part": opened.parts[0]["name"]} if len(opened.parts) > 1 and "part=" in page.url else {}
    else:
        assert "no heads or blocks" in opened.words
    answer = opened.api("answer", **{"text": changed, **off})
    assert answer["text"] in page.inner_text(".side-of:nth-child(2)")
    scores = opened.drawn(".side-of:nth-child(2) li", "+e.dataset.score")
    assert scores == numbers([score for _, score in answer["bars"][:8]])
    assert page.locator(".side-of").count() == 2
    ready(page, lambda: page.click("button:text-is('Undo all')"))


def meaning(opened: Opened) -> None:
    page = opened.page
    page.fill("[aria-label=Word]", "film")
    page.fill("[aria-label='Sentences, one per line']", SENTENCES)
    ready(page, lambda: page.click("button:text-is('Compare')"))
    if opened.kind in ("translator", "gru"):
        assert page.locator("main .error").count() == 1
        return
    answer = api_answer(page, "meaning", word="film", sentences=SENTENCES)
    assert opened.drawn(".dot", "[+e.dataset.x, +e.dataset.y]") == [numbers(point) for point in answer["points"][-1]]
    expected = [value for table in (answer["cosines"][-1], answer["static_cosines"]) for row in table for value in row]
    assert opened.drawn(".heat .cell", "+e.dataset.value") == numbers(expected)


def reasons(opened: Opened) -> None:
    if opened.kind not in ("classifier", "pair"):
        assert "instead" in opened.words or "--data FILE" in opened.words
        return
    opened.page.click(".job .go")
    opened.page.wait_for_selector(".job[data-done]", timeout=30_000)
    classes = api_answer(opened.page, "job", name="words")["result"]["classes"]
    expected = [word["score"] for each in classes for word in each["words"]]
    assert opened.drawn("[data-class] [data-word]", "+e.dataset.score") == numbers(expected)


def compare(opened: Opened) -> None:
    assert opened.page.locator("canvas.map").count() == 2
    expected = unpacked(opened.api("difference")["difference"]).flatten().tolist()
    assert opened.drawn(".heat [data-value]", "+e.dataset.value") == numbers(expected)
    assert max(expected) > 0


VIEWS: dict[str, Callable[[Opened], None]] = {
    "heads": heads,
    "steps": steps,
    "why": why,
    "lens": lens,
    "whatif": whatif,
    "meaning": meaning,
    "reasons": reasons,
    "compare": compare,
}
TEXTS: dict[str, tuple[str, str | None]] = {
    "pair": ("a warm film", "it is cold"),
    "tagger": ("Anna lives in Paris with Tom.", None),
    "reader": ("Who burned the soup?", "The cook burned the soup and opened a window."),
    "classifier": ("a lovely film", None),
}


@functools.cache
def pretrained() -> Model:
    return regard.load(minilm(), device="cpu")


@pytest.fixture
def load_kind(tmp_path: Path, write_rows: Callable[..., Path], trained: Path, reviews_csv: Path) -> Callable[..., Any]:
    """The model of a kind, and labeled data for it if there is any."""

    def load(kind: str) -> tuple[Model, Path | None]:
        if kind == "minilm":
            return pretrained(), None
        if kind == "classifier":
            return regard.load(trained, device="cpu"), reviews_csv
        if kind not in ("pair", "tagger", "reader"):
            return KINDS[kind](), None
        rows = [(f"a warm film {n}", ("it is warm", "it is cold")[n % 2], ("yes", "no")[n % 2]) for n in range(30)]
        pairs = write_rows(tmp_path / "pairs.csv", rows, ("first", "second", "label"))
        task = {"pair": "pair", "tagger": "tag", "reader": "answer"}[kind]
        data = {"tagger": samples.path("places"), "reader": samples.path("questions")}.get(kind, pairs)
        regard.train(data, task=task, out=tmp_path / "run", **QUICK)
        return regard.load(tmp_path / "run", device="cpu"), pairs if kind == "pair" else None

    return load


def other(model: Model) -> Model:
    """The same model with other weights."""
    copied = copy_of(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in copied.network.parameters():
            parameter.mul_(1 + 0.2 * torch.randn(parameter.shape, generator=generator))
    return copied


@pytest.mark.parametrize(
    "kind", ["minilm", "classifier", "pair", "tagger", "reader", "gpt2", "llama", "translator", "gru"]
)
def test_every_view(
    open_look: OpenPage, load_kind: Callable[..., Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_set, "ROWS", {"words": 12, "heads": 4, "faithfulness": 2})
    model, data = load_kind(kind)
    text, pair = TEXTS.get(kind, (TEXT, None))
    target = "the soup" if kind in ("translator", "gru") else None  # the same for both models
    hash = "" if target is None else f"#target={target}"
    page = open_look(model, other(model), text=text, pair=pair, data=data, hash=hash)
    opened = Opened(page, kind, text, pair, target)
    for name, check in VIEWS.items():
        if name != "heads":
            ready(page, lambda name=name: page.click(f"#tab-{name}"))  # type: ignore[misc]
        check(opened)
        assert page.locator("main .error").count() == (1 if name == "meaning" and kind in ("translator", "gru") else 0)
        assert no_sideways_scrolling(page)
