"""Draw the screenshots of docs/gallery.md: `python docs/make_screenshots.py`, or `make pictures`.

It fine-tunes minilm on the sample messages (a few minutes on two cores; `--model FOLDER` is a trained model), opens
the page of `regard look` in the system's Chromium, and writes one small PNG for each view.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import regard
from regard import samples
from regard.look.api import LookApi
from regard.look.server import LookServer
from regard.look.session import LookDefaults, LookSession
from regard.look.views import data_set

OUT = Path(__file__).parent / "pictures" / "look"
COOK = "The cook who burned the soup opened a window."
PARCEL = "My parcel was due on Monday and there is still no sign of it."
# Name, model, hash, height, and whether it is dark or narrow.
SHOTS: tuple[tuple[str, str, str, int, str], ...] = (
    ("heads", "minilm", "#layer=2&heads=8.4&token=4&key=5", 1060, ""),
    ("map", "minilm", "#mode=map&layer=2&heads=8&token=4&key=5", 1060, "dark"),
    ("grid", "minilm", "#mode=grid&layer=2&heads=8", 780, ""),
    ("steps", "minilm", "#view=steps&layer=2&heads=8&token=4&change=served", 2560, ""),
    ("why", "messages", "#view=why", 1440, ""),
    ("lens", "messages", "#view=lens", 960, ""),
    (
        "whatif",
        "messages",
        "#view=whatif&off=7-3_7-8&edit=2&changed=My+refund+was+due+on+Monday+and+there+is+still+no+sign+of+it.",
        1180,
        "",
    ),
    ("meaning", "minilm", "#view=meaning", 1300, ""),
    ("reasons", "messages", "#view=reasons", 1240, "dark"),
    ("compare", "messages", "#view=compare&layer=5&heads=3", 1440, ""),
    ("phone", "minilm", "#layer=2&heads=8&token=4", 860, "narrow"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a classifier that was trained on the sample messages")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", nargs="*", help="names of screenshots")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or train(Path(folder) / "messages")
        draw(model, options.out, options.only or [name for name, *_ in SHOTS])


def train(folder: Path) -> Path:
    regard.train(samples.path("messages"), start="minilm", out=folder, steps=60)
    return folder


def draw(messages: Path, out: Path, names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    minilm = regard.load("minilm")
    classifier = regard.load(messages)
    sessions = {
        "minilm": LookSession([("minilm", minilm)], LookDefaults(COOK)),
        "messages": LookSession(
            [("messages", classifier), ("minilm", minilm)], LookDefaults(PARCEL, data=samples.path("messages"))
        ),
    }
    if "reasons" in names:
        data_set.ROWS["words"] = 120  # enough for a picture
        data_set.run_now(sessions["messages"], "words", None)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, model, hash, height, look in SHOTS:
            if name in names:
                shoot(browser, sessions[model], hash, height, look, out / f"{name}.png")
        browser.close()


def shoot(browser: Any, session: LookSession, hash: str, height: int, look: str, path: Path) -> None:
    """One view of a session as a PNG of 256 colors, which keeps it small."""
    from PIL import Image

    with LookServer(LookApi(session)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        viewport = {"width": 390 if look == "narrow" else 1280, "height": height}
        page = browser.new_page(viewport=viewport, color_scheme="dark" if look == "dark" else "light")
        page.goto(server.url + hash)
        page.wait_for_selector("main[data-ready]", timeout=120_000)
        if "view=why" in hash:
            page.wait_for_selector("[data-done]", timeout=300_000)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=path)
        page.close()
        server.shutdown()
        thread.join()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
