"""The page as one file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.look.models import KINDS, TEXT, look_input, session

import regard
from regard.errors import InputError
from regard.look.html_file import MEANING, look_page, page_requests, request_key, run_jobs, session_page
from regard.look.session import LookDefaults, LookSession
from regard.look.views import data_set
from regard.progress import Progress

SHORT = "film"


def embedded(html: str) -> dict[str, dict[str, object]]:
    match = re.search(r'id="embedded">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    values: dict[str, dict[str, object]] = json.loads(match[1])
    return values


@pytest.mark.parametrize("kind", ["classifier", "gpt2", "translator", "gru", "plain gru"])
def test_every_kind_of_model_fits_in_a_file(kind: str) -> None:
    events: list[Progress] = []
    look = session(KINDS[kind](), text=SHORT)
    answers = embedded(session_page(look, progress=events.append).html)
    assert events[-1].done == events[-1].total == len(list(page_requests(look)))
    assert "error" not in answers[request_key("read", {"text": SHORT})]
    if look.read(0, look_input(SHORT)).parts:
        maps = [key for key in answers if key.startswith("map ")]
        assert maps
        assert all("error" not in answers[key] for key in maps)


def test_the_file_says_which_steps_it_holds() -> None:
    answers = embedded(session_page(session(KINDS["encoder"](), text=TEXT)).html)
    page: Any = answers[request_key("page", {})]
    held = page["file"]["steps"]["encoder"]
    tokens = len(session(KINDS["encoder"]()).read(0, look_input()).tokens)
    assert [[1, 0, token] in held for token in range(tokens)] == [True] * tokens
    for layer, head, token in held:
        key = request_key("steps", {"text": TEXT, "part": "encoder", "layer": layer, "head": head, "token": token})
        assert "error" not in answers[key]


def test_nothing_in_a_text_ends_the_script() -> None:
    html = session_page(session(KINDS["encoder"](), text="</script><script>alert(1)</script>")).html
    assert "</script><script>alert" not in html
    assert "http://" not in re.sub(r'"data:text/javascript[^"]*"', "", html).replace("http://www.w3.org/2000/svg", "")


def test_pages_in_notebooks_and_files(tmp_path: Path) -> None:
    page = look_page(KINDS["encoder"](), TEXT)
    assert page._repr_html_().startswith('<iframe srcdoc="')
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html


def test_results_over_data_are_in_the_file(trained: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_set, "ROWS", {"words": 8, "heads": 2, "faithfulness": 2})
    look = LookSession([("reviews", regard.load(trained, device="cpu"))], LookDefaults("a film", data=reviews_csv))
    run_jobs(look)
    answers = embedded(session_page(look).html)
    for name in ("words", "heads", "faithfulness"):
        assert answers[request_key("job", {"name": name})]["result"]


def test_long_texts_stay_on_the_server() -> None:
    with pytest.raises(InputError, match="up to 128 tokens"):
        session_page(session(KINDS["encoder"](), text=" ".join([TEXT] * 40)))


def test_the_example_is_that_of_the_page() -> None:
    source = (Path(data_set.__file__).parents[1] / "page" / "view_meaning.js").read_text(encoding="utf-8")
    for sentence in MEANING["sentences"].splitlines():
        assert f'"{sentence}"' in source
