"""Pages of `regard check` about hostile texts: well formed, and nothing of the data but as text."""

from __future__ import annotations

import contextlib
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from regard.data.check.finding import TrainingEstimate
from regard.data.check.page import html_page
from regard.data.check.run import TargetModel, check
from regard.errors import RegardError

MARK = "zqzq"  # in everything hostile, and nowhere in a page but in its texts
PARTS = (
    *(
        f"<script>{MARK}()</script>",
        f"<img src=x onerror={MARK}()>",
        f'"><svg onload={MARK}>',
        f"' onmouseover='{MARK}",
    ),
    *(f"</style><b>{MARK}", f"</td></table>{MARK}", f"<!-- {MARK} -->", f"<![CDATA[{MARK}]]>", f"&lt;{MARK}&gt;"),
    *(f"&#60;{MARK}&#x3e;", f"javascript:{MARK}", f"</title><title>{MARK}", f"<?xml {MARK}?>", f"<{MARK} a=b>"),
    *(f"{MARK}\0", f"{MARK}\x0b\x1f\x7f\x9f", f"{MARK}\u2028\u202e\ufeff", f"{MARK}\ud800", f"{MARK}\ufffe\uffff"),
    *(
        f"cafÃ© {MARK}",
        f"{{{{{MARK}}}}}",
        f"${{{MARK}}}",
        f"{MARK}%3Cscript%3E",
        f"\x1b]0;{MARK}\x07",
        f"<!DOCTYPE {MARK}>",
    ),
    *(f"]]>{MARK}", f"--><{MARK}", f"<style>*{{background:url({MARK})}}</style>", f"﹤{MARK}﹥", f"＜script＞{MARK}"),
)
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "h2",
        "p",
        "div",
        "section",
        "span",
        "strong",
        "b",
    ),
    *("svg", "text", "tspan", "rect", "line", "details", "summary", "table", "tr", "th", "td"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "class", "viewbox", "role", "aria-label", "x", "y", "x1", "x2", "y1", "y2"),
    *("width", "height", "rx", "dx", "text-anchor"),
}
VOID = {"meta"}


class Page(HTMLParser):
    """Tags in order, and what is in them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.faults.append(f"the tag {tag}")
        for name, value in attrs:
            if name not in ATTRIBUTES or MARK in (value or ""):
                self.faults.append(f"the attribute {name}={value!r}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"the end of {tag}")

    def handle_data(self, data: str) -> None:
        if MARK in data and "style" in self.open:
            self.faults.append("a text in the style")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment {data!r:.60}")

    def handle_decl(self, decl: str) -> None:
        if decl != "DOCTYPE html":
            self.faults.append(f"a declaration {decl!r:.60}")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"an instruction {data!r:.60}")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"a declaration {data!r:.60}")


def _hostile(draw: random.Random) -> str:
    return "".join(
        draw.choice((draw.choice(PARTS), draw.choice(PARTS), "word ", " ")) for _ in range(draw.randint(1, 4))
    )


def _rows(draw: random.Random) -> list[dict[str, object]]:
    kind = draw.choice(("classify", "classify", "pair", "tag", "spans", "answer", "translate"))
    rows: list[dict[str, object]] = []
    for _ in range(draw.randrange(2, 25)):
        text, other = _hostile(draw), _hostile(draw)
        made: dict[str, dict[str, object]] = {
            "classify": {"text": text, "label": draw.choice((other, MARK, f"{MARK}<", "a"))},
            "pair": {"sentence1": text, "sentence2": draw.choice((text, other)), "label": draw.choice((0, 1, other))},
            "tag": {"tokens": [text or "x", "b"], "tags": draw.choice((["B-" + MARK, "O"], ["I-<x>", "I-y"], [other]))},
            "spans": {
                "text": text,
                "entities": [{"start": draw.randrange(9), "end": draw.randrange(9), "label": other}],
            },
            "answer": {"context": text, "question": other, "answers": [{"text": text[:3], "answer_start": 0}]},
            "translate": {"translation": {"en": text, "<de>": other}},
        }
        rows.append(made[kind])
    return rows + rows[: draw.choice((0, 0, 2))]


def _check(html: str) -> None:
    parser = Page()
    parser.feed(html)
    parser.close()
    assert not parser.faults, parser.faults[0]
    assert not parser.open, f"{parser.open} not closed"
    ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))
    assert not re.search(r"(?i)<script|\son\w+\s*=\s*[\"']|(?:src|href)\s*=\s*[\"']", html)
    html.encode("utf-8")


def fuzz(draw: random.Random, folder: Path) -> None:
    name = f"{draw.choice(('data', 'a <b> & c', 'x', chr(39)))}.{draw.choice(('jsonl', 'csv'))}"
    path = folder / name
    rows = _rows(draw)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        lines = [list(rows[0]), *cells]
        quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines]
        path.write_bytes("\n".join(quoted).encode("utf-8", "replace"))
    about = TrainingEstimate(
        _hostile(draw), 1000, 10, 10**9, _hostile(draw), draw.random() * 10**6, 2.0, 5, _hostile(draw)
    )
    forecast = None if draw.random() < 0.5 else lambda task, rows, lengths, classes, split_off: about
    reading = TargetModel(limit=draw.choice((None, 4)), forecast=forecast)
    report = None
    with contextlib.suppress(RegardError):
        report = check(path, model=reading, dev=path if draw.random() < 0.2 else None)
    if report is not None:
        _check(html_page(report, name=_hostile(draw)))
