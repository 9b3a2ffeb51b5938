"""`regard lesson` lists, opens, writes and runs lessons."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest
from tests.cli.helpers import Capture, run

from regard.lessons.catalog import all_lessons


def test_the_list(capsys: Capture) -> None:
    status, out, err = run(capsys, "lesson")
    assert status == 0
    assert [line.split()[1] for line in out.splitlines()] == [lesson.name for lesson in all_lessons()]
    assert "regard lesson NUMBER" in err
    listed = json.loads(run(capsys, "lesson", "--json")[1])["lessons"]
    assert listed[0] == {"number": 1, "name": "counting", "title": all_lessons()[0].title}


def test_a_page_is_opened_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: bool(opened.append(url)))
    status, out, err = run(capsys, "lesson", "1")
    path = Path(out.strip())
    assert status == 0
    assert path.parent == tmp_path / "regard" / "lessons"
    assert "running lesson 1" in err
    assert "no browser was found" in err
    assert opened == [path.as_uri()]
    status, out, err = run(capsys, "lesson", "counting", "--no-browser", "--json")
    assert json.loads(out) == {"number": 1, "name": "counting", "file": str(path)}
    assert (err, len(opened)) == ("", 1)


def test_files(tmp_path: Path, capsys: Capture) -> None:
    assert run(capsys, "lesson", "1", "--html", tmp_path / "a.html")[:2] == (0, f"{tmp_path / 'a.html'}\n")
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    status, _, err = run(capsys, "lesson", "1", "--notebook", tmp_path / "a.ipynb")
    assert (status, "jupyter lab" in err) == (0, True)
    assert json.loads((tmp_path / "a.ipynb").read_text(encoding="utf-8"))["nbformat"] == 4
