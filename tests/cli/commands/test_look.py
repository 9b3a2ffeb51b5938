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


def test_a_page_is_written(trained: Path, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    status, out, err = run(capsys, "look", trained, "a lovely film", "--html", path, "--json", "--device", "cpu")
    assert status == 0, err
    assert json.loads(out) == {"files": [str(path)]}
    assert path.stat().st_size > 1000
