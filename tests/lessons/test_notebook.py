"""A notebook holds every part of a page as a cell."""

from __future__ import annotations

import json
from pathlib import Path

from regard.lessons.catalog import Lesson
from regard.lessons.notebook import write_notebook
from regard.lessons.page import parse_page

MARKDOWN = "# Title\n\nText.\n\n```python\nx = 1\nprint(x)\n```\n```python check\nassert x == 1\n```\n"


def test_cells(tmp_path: Path) -> None:
    page = parse_page(Lesson(1, "test", "Title", Path("01-test.md")), MARKDOWN)
    notebook = json.loads(write_notebook(page, tmp_path / "a.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code", "markdown", "code"]
    assert "empty folder" in cells[1]["source"][0]
    assert cells[2]["source"] == ["x = 1\n", "print(x)"]
    assert cells[2]["outputs"] == []
    assert cells[4]["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["check"]}
    assert len({cell["id"] for cell in cells}) == 5
