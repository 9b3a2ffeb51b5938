"""How fast the page of `regard look` is: seconds and memory of its largest pictures, against the limits it promises.

    python benchmarks/look.py            seconds of each picture in the browser, from the address to the drawing
    python benchmarks/look.py --api      the same without a browser

Run it on an idle machine; the limits are for two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import threading
import time
import warnings
from typing import Any, NamedTuple
from urllib.parse import quote

import torch

import regard
from regard.config import AttentionConfig, PositionConfig
from regard.look.api import LookApi
from regard.look.server import LookServer
from regard.look.session import LookDefaults, LookSession
from regard.predict import Model

SENTENCE = "the cook who burned soup opened a window and then left home again with some old bread"


Request = tuple[str, dict[str, Any]]


class Case(NamedTuple):
    """A picture: its limit in seconds, the model and the tokens, and how the page and the API are asked for it."""

    name: str
    limit: float
    model: Model
    tokens: int
    hash: str
    requests: list[Request]


def text_of(tokens: int) -> str:
    words = SENTENCE.split()
    return " ".join(words[number % len(words)] for number in range(tokens - 2))


def wide(minilm: Model, *, layers: int, width: int) -> Model:
    """A network with 12 heads in each layer that reads long texts; its weights are random."""
    return regard.create(
        "tiny-modernbert",
        tokenizer=minilm.tokenizer,
        width=width,
        layers=layers,
        ffn_width=3 * width,
        attention=AttentionConfig(heads=12),
        positions=PositionConfig("rotary", max_tokens=8192),
        device="cpu",
    )


def in_api(model: Model, requests: list[Request]) -> tuple[float, float]:
    """Seconds, and seconds of all processors together, which other programs disturb less."""
    api = LookApi(LookSession([("model", model)], LookDefaults("a text")))
    start, used = time.perf_counter(), time.process_time()
    for name, values in requests:
        assert api.handle("POST", f"/api/{name}", json.dumps(values).encode()).status == 200
    return time.perf_counter() - start, time.process_time() - used


def in_browser(browser: Any, model: Model, hash: str, text: str) -> float:
    session = LookSession([("model", model)], LookDefaults("a text"))
    with LookServer(LookApi(session)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{server.url}#view=meaning")  # scripts and fonts are loaded, the text is not read yet
        page.wait_for_selector("main[data-ready]", timeout=60_000)
        before = page.get_attribute("main", "data-ready")
        start = time.perf_counter()
        page.evaluate("hash => { location.hash = hash; }", f"{hash}&text={quote(text)}")
        page.wait_for_function(
            "before => document.querySelector('main').dataset.ready !== before", arg=before, timeout=120_000
        )
        seconds = time.perf_counter() - start
        page.close()
        server.shutdown()
        thread.join()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", action="store_true", help="without a browser")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    minilm = regard.load("minilm", device="cpu")
    base, long = wide(minilm, layers=12, width=768), wide(minilm, layers=6, width=384)
    head: list[Request] = [("map", {"layer": 3, "heads": [0]})]
    cases = [
        Case("lines of one head, 512 tokens, minilm", 1.0, minilm, 512, "mode=lines&layer=3&heads=0", head),
        Case("12 x 12 small maps, 128 tokens, BERT-base shape", 2.0, base, 128, "mode=grid", [("grid", {})]),
        Case("heat map, 4,096 tokens, 6 layers of width 384", 5.0, long, 4096, "mode=map&layer=3&heads=0", head),
        Case("6 x 12 small maps, 4,096 tokens, the same", 10.0, long, 4096, "mode=grid", [("grid", {})]),
    ]
    print(f"{torch.get_num_threads()} threads, {'API' if options.api else 'browser'}")
    if options.api:
        for name, limit, model, tokens, _, requests in cases:
            text = {"text": text_of(tokens)}
            in_api(model, [("read", {"text": "a text"})])  # the first run of a network is slower
            seconds, used = in_api(model, [("read", text), *((path, text | values) for path, values in requests)])
            show(name, seconds, limit, f"  CPU {used:.2f} s")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, limit, model, tokens, hash, _ in cases:
            show(name, in_browser(browser, model, hash, text_of(tokens)), limit)
        browser.close()


def show(name: str, seconds: float, limit: float, more: str = "") -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:<50} {seconds:5.2f} s (limit {limit:.0f})  peak memory {peak:,.0f} MB{more}")


if __name__ == "__main__":
    main()
