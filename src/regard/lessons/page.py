"""A lesson as a list of parts: text in Markdown and blocks of Python code.

Fences of `python` run and are shown. `python check` holds assertions of what the text claims, and `python solution` the
solution of an exercise: both run too, and are shown folded. Other fences are part of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.errors import InputError
from regard.lessons.catalog import Lesson

FENCE = re.compile(r"^```python(?:[ \t]+(\w+))?[ \t]*\n(.*?)^```[ \t]*$\n?", re.MULTILINE | re.DOTALL)
KINDS = {"example": "", "check": "What this page checks", "solution": "Solution"}  # with the title of a folded block


@dataclass(frozen=True)
class Text:
    """Markdown between two blocks of code."""

    markdown: str


@dataclass(frozen=True)
class Code:
    """A block of Python code. kind: "example", "check" or "solution". line: of its first line in the file."""

    source: str
    kind: str
    line: int


@dataclass(frozen=True)
class Page:
    """A parsed lesson."""

    lesson: Lesson
    parts: tuple[Text | Code, ...]

    @property
    def blocks(self) -> list[Code]:
        """The blocks of code, in order."""
        return [part for part in self.parts if isinstance(part, Code)]


def read_page(lesson: Lesson) -> Page:
    """The parts of a lesson. Raises InputError for a fence of an unknown kind."""
    return parse_page(lesson, lesson.path.read_text(encoding="utf-8"))


def parse_page(lesson: Lesson, markdown: str) -> Page:
    """The parts of a page of Markdown."""
    parts: list[Text | Code] = []
    end = 0
    for fence in FENCE.finditer(markdown):
        kind = fence[1] or "example"
        line = markdown.count("\n", 0, fence.start(2)) + 1
        if kind not in KINDS:
            raise InputError(
                f'{lesson.path.name} line {line - 1}: a fence of "python {kind}"; expected python, python check or '
                "python solution."
            )
        if text := markdown[end : fence.start()].strip("\n"):
            parts.append(Text(text))
        parts.append(Code(fence[2], kind, line))
        end = fence.end()
    if text := markdown[end:].strip("\n"):
        parts.append(Text(text))
    return Page(lesson, tuple(parts))
