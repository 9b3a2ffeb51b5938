"""A lesson in the terminal: its text, its code and what the code prints, block after block."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.output import print_json
from regard.cli.terminal import drawing_stdout
from regard.errors import escape_control_characters

if TYPE_CHECKING:
    from rich.console import Console

    from regard.lessons.page import Code, Page, Text
    from regard.lessons.run import BlockResult


def run_in_terminal(page: Page, *, json: bool) -> None:
    """Run a lesson and show it while it runs; with `json`, print one object at the end."""
    from regard.lessons.run import run_page

    if json:
        results = run_page(page).blocks
        blocks = [
            {"line": one.code.line, "kind": one.code.kind, "output": one.output, "seconds": round(one.seconds, 3)}
            for one in results
        ]
        print_json({"number": page.lesson.number, "name": page.lesson.name, "blocks": blocks})
        return
    from rich.console import Console

    console = Console(file=drawing_stdout())
    parts = iter(page.parts)
    _show_until_code(console, parts)
    pictures = _Pictures(page.lesson.stem)

    def show(result: BlockResult) -> None:
        if result.output:
            console.print(
                escape_control_characters(result.output.rstrip("\n")), markup=False, highlight=False, soft_wrap=True
            )
        for png in result.figures:
            console.print(f"picture: {pictures.write(png)}", style="dim", markup=False, highlight=False, soft_wrap=True)
        _show_until_code(console, parts)

    run_page(page, on_result=show)


def _show_until_code(console: Console, parts: Iterator[Text | Code]) -> None:
    """Print the text up to the next block of code, and that block, which runs next."""
    from rich.markdown import Markdown
    from rich.syntax import Syntax

    from regard.lessons.page import KINDS, Text

    for part in parts:
        console.print()
        if isinstance(part, Text):
            console.print(Markdown(part.markdown))
            continue
        if part.kind != "example":
            console.print(f"{KINDS[part.kind]}:", style="bold")
        console.print(
            Syntax(part.source.rstrip("\n"), "python", theme="ansi_dark", background_color="default", word_wrap=True)
        )
        return


class _Pictures:
    """A folder for the pictures of a run, made when the first one is written."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._count = 0
        self._folder: Path | None = None

    def write(self, png: bytes) -> Path:
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix=f"regard-lesson-{self._stem}-"))
        self._count += 1
        path = self._folder / f"{self._count}.png"
        path.write_bytes(png)
        return path
