"""A lesson as a Jupyter notebook: plain JSON in nbformat 4.5, without outputs."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from regard.data.atomic import atomic_text_file
from regard.lessons.page import KINDS, Code, Page, Text

START = """# The lesson writes its files into an empty folder, so that all cells can run again.
import os
import tempfile

os.chdir(tempfile.mkdtemp(prefix="regard-lesson-"))"""


def write_notebook(page: Page, path: Path) -> Path:
    """Write the notebook. Checks and solutions are folded cells, tagged "check" and "solution"."""
    with atomic_text_file(path) as file:
        json.dump(notebook(page), file, ensure_ascii=False, indent=1)
        file.write("\n")
    return path


def notebook(page: Page) -> dict[str, Any]:
    """The notebook as its JSON object."""
    cells: list[dict[str, Any]] = []
    for part in page.parts:
        if isinstance(part, Text):
            cells.append(_cell(len(cells), "markdown", part.markdown))
        else:
            if part.kind != "example":
                cells.append(_cell(len(cells), "markdown", f"*{KINDS[part.kind]}:*"))
            if not any(cell["cell_type"] == "code" for cell in cells):
                cells.append(_code_cell(len(cells), Code(START, "example", 0)))
            cells.append(_code_cell(len(cells), part))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": version},
            "title": page.lesson.title,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _code_cell(number: int, code: Code) -> dict[str, Any]:
    cell = _cell(number, "code", code.source.strip("\n"))
    if code.kind != "example":
        cell["metadata"] = {"jupyter": {"source_hidden": True}, "tags": [code.kind]}
    return cell | {"execution_count": None, "outputs": []}


def _cell(number: int, kind: str, source: str) -> dict[str, Any]:
    identifier = hashlib.sha256(f"{number} {source}".encode()).hexdigest()[:8]
    return {"cell_type": kind, "id": identifier, "metadata": {}, "source": source.splitlines(keepends=True)}
