"""regard look."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from tests.cli.helpers import Capture, run, start


def test_the_page_is_served(trained: Path) -> None:
    process = start("look", trained, "a lovely film", "--no-browser", "--device", "cpu")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split("The page is at ")[1].split()[0]
        request = urllib.request.Request(f"{url}api/page", data=b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=20) as response:
            page = json.load(response)
        assert page["text"] == "a lovely film"
        assert page["models"][0]["task"] == "classify"
    finally:
        process.terminate()
        process.communicate()


def test_wrong_use(capsys: Capture, tmp_path: Path) -> None:
    status, _, err = run(capsys, "look", tmp_path, " ")
    assert status == 2
    assert "TEXT is empty" in err
    status, _, err = run(capsys, "look", tmp_path / "nothing", "a text")
    assert status == 1


def test_a_page_is_written(trained: Path, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    status, out, err = run(capsys, "look", trained, "a lovely film", "--html", path, "--json", "--device", "cpu")
    assert status == 0, err
    assert json.loads(out) == {"files": [str(path)]}
    assert path.stat().st_size > 1000


def test_outputs_that_cannot_be_written(trained: Path, capsys: Capture, tmp_path: Path) -> None:
    status, _, err = run(capsys, "look", trained, "a film", "--html", tmp_path / "page.txt")
    assert status == 2
    assert "ends in .html" in err
    status, _, err = run(capsys, "look", trained, "a film", "--data", tmp_path / "missing.csv")
    assert status == 2
    assert "no such file" in err
