"""Every view of a classifier, with a second one beside it: what is drawn are the numbers of the API.

Other kinds of models are asked through the API (tests/look).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, no_sideways_scrolling, ready

import regard
from regard.look.jobs import copy_of
from regard.look.views import data_set
from regard.look.views.arrays import unpacked
from regard.predict import Model

TEXT = "a lovely film"
SENTENCES = "the film was warm\na dull film"


def drawn(page: Any, selector: str, value: str) -> list[Any]:
    values: list[Any] = page.eval_on_selector_all(selector, f"all => all.map(e => {value})")
    return values


def numbers(expected: Any) -> Any:
    return pytest.approx(expected, abs=2e-5)


def heads(page: Any) -> None:
    weights = unpacked(api_answer(page, "map", text=TEXT, layer=1, heads=[0])["weights"])[0]
    lines = drawn(page, ".lines path", "[+e.dataset.query, +e.dataset.key, +e.dataset.weight]")
    assert lines
    assert [weight for *_, weight in lines] == numbers([float(weights[query, key]) for query, key, _ in lines])
    ready(page, lambda: page.click('[aria-label="Queries"] .token >> nth=1'))
    listed = drawn(page, ".strongest .token", "[+e.dataset.key, +e.dataset.weight]")
    assert listed[0][1] == numbers(float(weights[1].max()))
    ready(page, lambda: page.click(".strongest .token >> nth=0"))
    pair = api_answer(page, "pair", text=TEXT, layer=1, head=0, query=1, key=listed[0][0])
    assert drawn(page, ".products rect", "+e.dataset.product") == numbers(pair["products"])
    ready(page, lambda: page.click("text=All heads"))
    largest = [value for row in api_answer(page, "grid", text=TEXT)["largest"] for value in row]
    assert drawn(page, ".thumb", "+e.dataset.largest") == numbers(largest)
    ready(page, lambda: page.click("text=Lines"))


def steps(page: Any) -> None:
    answer = api_answer(page, "steps", text=TEXT, layer=1, head=0, token=1)
    assert drawn(page, ".scores [data-weight]", "+e.dataset.weight") == numbers(answer["weights"])
    assert drawn(page, ".scores [data-dot]", "+e.dataset.dot") == numbers(answer["dots"])
    shapes = drawn(page, ".step .shape", "e.textContent")
    assert any(f"({len(answer['query'])} × {answer['all_keys']})" in shape for shape in shapes)
    page.fill("#change-word", "film")
    ready(page, lambda: page.click("button:text-is('Compare')"))
    assert max(drawn(page, ".heat .cell", "+e.dataset.value")) > 0


def why(page: Any) -> None:
    page.wait_for_selector(".view-why[data-done]", timeout=30_000)
    assert "not an explanation" in page.inner_text("main")
    methods = [method["name"] for method in api_answer(page, "methods")["methods"]]
    assert drawn(page, "[data-method]", "e.dataset.method") == methods
    falls = []
    for name in methods:
        answer = api_answer(page, "explain", text=TEXT, method=name)
        known = {(word["text"], round(word["score"], 4)) for word in answer["words"]}
        words = drawn(page, f"[data-method={name}] .word", "[e.textContent, +e.dataset.score]")
        assert words
        assert {(word, round(score, 4)) for word, score in words} <= known
        falls.append(answer["faithfulness"]["comprehensiveness"])
    methods_only = "[data-row]:not([data-row='random order'])"
    rows = drawn(page, f"{methods_only} [data-value]", "+e.dataset.value")
    assert sorted(rows) == numbers(sorted(falls))
    worst, best = api_answer(page, "limits", text=TEXT)["limits"]
    worst, best = min(worst, *rows), max(best, *rows)
    expected = [(row - worst) / (best - worst) for row in rows]
    assert drawn(page, f"{methods_only} [data-normalized]", "+e.dataset.normalized") == pytest.approx(
        expected, abs=1e-3
    )
    first = page.inner_text(".lead")
    options = drawn(page, "[aria-label=Explain] option", "e.value")
    other = next(option for option in options if option and f'"{option}"' not in first)
    ready(page, lambda: page.select_option("[aria-label=Explain]", other))
    assert f'"{other}"' in page.inner_text(".lead")


def lens(page: Any) -> None:
    expected = [value for row in api_answer(page, "lens", text=TEXT)["probabilities"] for value in row]
    assert sorted(drawn(page, ".lens .cell", "+e.dataset.value")) == numbers(sorted(expected))


def what_if(page: Any) -> None:
    ready(page, lambda: page.click(".tokens .token >> nth=2"))
    ready(page, lambda: page.click("button:text-is('Delete')"))
    ready(page, lambda: page.click("[aria-label='layer 1, head 0']"))
    changed = page.input_value("[aria-label='Changed text']")
    assert changed != TEXT
    answer = api_answer(page, "answer", text=changed, off=[[1, 0]])
    assert answer["text"] in page.inner_text(".side-of:nth-child(2)")
    scores = drawn(page, ".side-of:nth-child(2) li", "+e.dataset.score")
    assert scores == numbers([score for _, score in answer["bars"][:8]])
    ready(page, lambda: page.click("button:text-is('Undo all')"))
    page.click("#counterfactuals")
    page.wait_for_selector("[data-done]")
    changes = api_answer(page, "counterfactuals", text=TEXT)["changes"]
    assert drawn(page, "[data-text]", "e.dataset.text") == [change["text"] for change in changes][:20]
    page.click("[data-job=heads] .go")
    page.wait_for_selector("[data-job=heads][data-done]", timeout=30_000)
    lost = [value for row in api_answer(page, "job", name="heads")["result"]["heads"] for value in row]
    assert drawn(page, "[data-job=heads] [data-value]", "+e.dataset.value") == numbers(lost)


def meaning(page: Any) -> None:
    page.fill("[aria-label=Word]", "film")
    page.fill("[aria-label='Sentences, one per line']", SENTENCES)
    ready(page, lambda: page.click("button:text-is('Compare')"))
    answer = api_answer(page, "meaning", word="film", sentences=SENTENCES)
    assert drawn(page, ".dot", "[+e.dataset.x, +e.dataset.y]") == [numbers(point) for point in answer["points"][-1]]
    expected = [value for table in (answer["cosines"][-1], answer["static_cosines"]) for row in table for value in row]
    assert drawn(page, ".heat .cell", "+e.dataset.value") == numbers(expected)


def reasons(page: Any) -> None:
    page.click(".job .go")
    page.wait_for_selector(".job[data-done]", timeout=30_000)
    classes = api_answer(page, "job", name="words")["result"]["classes"]
    assert drawn(page, "[data-class]", "e.dataset.class") == [each["label"] for each in classes]
    expected = [word["score"] for each in classes for word in each["words"]]
    assert drawn(page, "[data-class] [data-word]", "+e.dataset.score") == numbers(expected)


def compare(page: Any) -> None:
    assert page.locator("canvas.map").count() == 2
    expected = unpacked(api_answer(page, "difference", text=TEXT)["difference"]).flatten().tolist()
    assert drawn(page, ".heat [data-value]", "+e.dataset.value") == numbers(expected)
    assert max(expected) > 0


VIEWS = {
    "heads": heads,
    "steps": steps,
    "why": why,
    "lens": lens,
    "whatif": what_if,
    "meaning": meaning,
    "reasons": reasons,
    "compare": compare,
}


def other(model: Model) -> Model:
    """The same model with other weights."""
    copied = copy_of(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in copied.network.parameters():
            parameter.mul_(1 + 0.2 * torch.randn(parameter.shape, generator=generator))
    return copied


def test_every_view(open_look: OpenPage, trained: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_set, "ROWS", {"words": 12, "heads": 4, "faithfulness": 2})
    model = regard.load(trained, device="cpu")
    page = open_look(model, other(model), text=TEXT, data=reviews_csv, hash="#layer=1&heads=0")
    for name, check in VIEWS.items():
        if name != "heads":
            ready(page, lambda name=name: page.click(f"#tab-{name}"))  # type: ignore[misc]
        check(page)
        assert page.locator("main .error").count() == 0
        assert no_sideways_scrolling(page)
        page.set_viewport_size({"width": 390, "height": 800})
        assert no_sideways_scrolling(page)
        page.set_viewport_size({"width": 1280, "height": 900})
