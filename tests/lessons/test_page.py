"""A page is split into text and code; the line of a block is its line in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import InputError
from regard.lessons.catalog import Lesson, all_lessons
from regard.lessons.page import Code, Page, Text, parse_page, read_page

MARKDOWN = """# Title

Text.

```python
x = 1
print(x)
```

```console
$ regard info minilm
```
```python check
assert x == 1
```
```python solution
print("```")
```
The end."""


def page(markdown: str) -> Page:
    return parse_page(Lesson(1, "test", "Title", Path("01-test.md")), markdown)


def test_parts() -> None:
    parts = page(MARKDOWN).parts
    assert parts == (
        Text("# Title\n\nText."),
        Code("x = 1\nprint(x)\n", "example", 6),
        Text("```console\n$ regard info minilm\n```"),
        Code("assert x == 1\n", "check", 14),
        Code('print("```")\n', "solution", 17),
        Text("The end."),
    )
    lines = MARKDOWN.splitlines()
    assert all(lines[code.line - 1] == code.source.splitlines()[0] for code in page(MARKDOWN).blocks)


def test_an_unknown_kind_of_block() -> None:
    with pytest.raises(InputError, match=r'01-test.md line 3: a fence of "python answer"'):
        page("# Title\n\n```python answer\n```\n")


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.stem)
def test_pages_are_short(lesson: Lesson) -> None:
    """About 150 lines of text and code, without empty lines, checks and solutions."""
    parts = [part for part in read_page(lesson).parts if isinstance(part, Text) or part.kind == "example"]
    lines = [line for part in parts for line in (part.markdown if isinstance(part, Text) else part.source).splitlines()]
    assert sum(bool(line.strip()) for line in lines) <= 160
    assert read_page(lesson).blocks
