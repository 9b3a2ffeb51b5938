"""The page as one HTML file that opens anywhere: its scripts, its style and the answers of one text inside.

The page asks for its data under the same keys as from a server, and finds them in the file. Scripts are data URLs of an
import map, because a browser loads no modules from files. Nothing is requested from outside.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from regard.data.atomic import atomic_path
from regard.errors import InputError, RegardError
from regard.look.api import LookApi
from regard.look.explain.methods import methods_for
from regard.look.reading import AttentionPart, LookInput
from regard.look.session import LookDefaults, LookSession
from regard.look.views import data_set
from regard.predict import Model
from regard.progress import OnProgress, Progress

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
MAX_TOKENS = 128  # of a text whose maps are all written
MAX_STEPS = 48  # tokens whose steps are written
MAX_NUMBERS = 400_000  # of the queries and keys of all heads together
JOBS = ("words", "heads", "faithfulness")
MEANING = {  # the example of the page, view_meaning.js
    "word": "bank",
    "sentences": "She sat on the grassy bank of the river.\nThey fished from the muddy bank all day.\n"
    "The boat was tied to the left bank.\nHe keeps his money in the bank.\nThe bank raised its interest rates.\n"
    "She took a loan from the bank.",
}
Request = tuple[str, dict[str, Any]]


class LookPage:
    """The page of a model and a text, complete in itself: `save` writes it, notebooks show it."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | Path) -> Path:
        """Write the page as one file."""
        target = Path(path).expanduser()
        with atomic_path(target) as new_file:
            new_file.write_text(self.html, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        style = "width:100%;height:860px;border:0;border-radius:8px"
        page = escape(self.html)
        return f'<iframe srcdoc="{page}" style="{style}" sandbox="allow-scripts" title="regard look"></iframe>'


def look_page(
    model: Model,
    text: str,
    pair: str | None = None,
    *,
    target: str | None = None,
    compare: Model | None = None,
    data: str | Path | None = None,
    progress: OnProgress | None = None,
) -> LookPage:
    """The page of `regard look` for one text, complete in itself: shown in notebooks, and `.save("page.html")`.

    pair: the second text of a pair, or the context of a question.
    target: for translators, the translation to look at; the model's own if not given.
    compare: a second model, shown beside the first.
    data: labeled data for the views over a data set; this takes minutes.

        regard.look_page(regard.load("minilm"), "a cat sat").save("cat.html")
    """
    models = [(each.family if each.folder is None else each.folder.name, each) for each in (model, compare) if each]
    session = LookSession(models, LookDefaults(text, pair, target, None if data is None else Path(data)))
    run_jobs(session, progress=progress)
    return session_page(session, progress=progress)


def session_page(session: LookSession, *, progress: OnProgress | None = None) -> LookPage:
    """The page with the answers of the session's first text inside."""
    requests = list(page_requests(session))
    answers = {}
    for done, (name, values) in enumerate(requests, start=1):
        answers[request_key(name, values)] = _answer(session, name, values)
        if progress is not None:
            progress(Progress("views", done, len(requests)))
    answers[request_key("page", {})]["file"] = {"steps": _written_steps(requests)}
    return LookPage(_html(answers))


def run_jobs(session: LookSession, *, progress: OnProgress | None = None) -> None:
    """Run the work over the session's data set now, so that the page holds its results; those that do not fit fail."""
    for name in JOBS if session.defaults.data is not None else ():
        data_set.run_now(session, name, progress)


def _answer(session: LookSession, name: str, values: dict[str, Any]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(
            LookApi(session).handle("POST", f"/view/{name}", json.dumps(values).encode()).body
        )
    except RegardError as error:
        return {"error": str(error)}
    return answer


def request_key(name: str, values: Mapping[str, Any]) -> str:
    """The key of a request, as api.js writes it: names in order, without what is empty."""
    filled = {key: value for key, value in values.items() if value is not None and value != ""}
    return f"{name} {json.dumps(filled, ensure_ascii=False, sort_keys=True, separators=(',', ':'))}"


def page_requests(session: LookSession) -> Iterator[Request]:
    """Every request that the page makes for its first text."""
    defaults = session.defaults
    request = LookInput(defaults.text, defaults.pair, defaults.target)
    text = {"text": defaults.text, "pair": defaults.pair, "target": defaults.target}
    yield "page", {}
    yield "positions", {}
    yield "methods", {}
    for number in range(len(session.models)):
        which = text | ({"model": number} if number else {})
        reading = session.read(number, request)
        yield "read", which
        yield "answer", which
        for part in reading.parts:
            yield from _maps(part, which)
            if number == 0:
                yield from _heads(part, text)
    yield "lens", text
    yield "meaning", dict(MEANING)
    yield "counterfactuals", text
    for method in methods_for(session.model(0).network):
        yield "explain", text | {"method": method}
    yield "limits", text
    if len(session.models) > 1:
        yield "difference", text
    if defaults.data is not None:
        for name in JOBS:
            yield "job", {"name": name}


def _written_steps(requests: Sequence[Request]) -> dict[str, list[list[int]]]:
    """The steps in the file by part, each as layer, head and token."""
    steps: dict[str, list[list[int]]] = {}
    for name, values in requests:
        if name == "steps":
            steps.setdefault(values["part"], []).append([values["layer"], values["head"], values["token"]])
    return steps


def _maps(part: AttentionPart, text: dict[str, Any]) -> Iterator[Request]:
    if max(len(part.queries), len(part.keys)) > MAX_TOKENS:
        raise InputError(
            f"a page in a file holds all maps of texts of up to {MAX_TOKENS} tokens; this one has "
            f"{max(len(part.queries), len(part.keys))}. Give a shorter text, or open the page without --html."
        )
    for layer in range(1, part.depth + 1):
        for head in range(part.heads):
            yield "map", text | {"part": part.name, "layer": layer, "heads": [head]}


def _heads(part: AttentionPart, text: dict[str, Any]) -> Iterator[Request]:
    """Small maps, queries and keys, and the steps of some heads and tokens."""
    yield "grid", text | {"part": part.name}
    if part.alignment_TS is not None:
        return
    middle = -(-part.depth // 2)
    first = min(1, len(part.queries) - 1)
    heads = {(middle, head, first) for head in range(part.heads)} | {
        (layer, 0, first) for layer in range(1, part.depth + 1)
    }
    tokens = {(middle, 0, token) for token in range(min(MAX_STEPS, len(part.queries)))}
    for layer, head, token in sorted(heads | tokens):
        yield "steps", text | {"part": part.name, "layer": layer, "head": head, "token": token}
    width = part.layers[0].q_NHK.shape[-1]
    if (len(part.keys) + len(part.queries)) * width * part.depth * part.heads <= MAX_NUMBERS:
        for layer in range(1, part.depth + 1):
            for head in range(part.heads):
                yield "vectors", text | {"part": part.name, "layer": layer, "head": head}


def _html(answers: Mapping[str, Any]) -> str:
    """The page with everything inside; `<` of the data is escaped, so that no text ends the script."""
    files = {item.name: item.read_text("utf-8") for item in resources.files("regard.look").joinpath("page").iterdir()}
    imports = {f"look/{name}": _data_url(source) for name, source in files.items() if name.endswith(".js")}
    data = json.dumps(answers, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    scripts = (
        f'<script type="application/json" id="embedded">{data}</script>\n'
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n'
        '<script type="module">import "look/app.js";</script>'
    )
    page = files["index.html"]
    page = page.replace('<link rel="stylesheet" href="look.css">', f"<style>{files['look.css']}</style>")
    page = page.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">')
    return page.replace('<script type="module" src="app.js"></script>', scripts)


def _data_url(source: str) -> str:
    """A module whose imports are names of the import map."""
    absolute = re.sub(r'from "\./([\w.]+)"', r'from "look/\1"', source)
    return f"data:text/javascript;base64,{base64.b64encode(absolute.encode()).decode('ascii')}"
