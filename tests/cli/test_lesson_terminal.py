"""A lesson in the terminal shows its text, its code and what the code prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.helpers import Capture

from regard.cli.lesson_terminal import run_in_terminal
from regard.lessons.catalog import Lesson
from regard.lessons.page import parse_page

MARKDOWN = """# Title

Text with `code`.

```python
from matplotlib import pyplot
print("[b]one\\x1b")
pyplot.subplots(figsize=(1, 1))
```
```python solution
print(2)
```
The end.
"""


def test_a_lesson_in_the_terminal(capsys: Capture) -> None:
    page = parse_page(Lesson(1, "test", "Title", Path("01-test.md")), MARKDOWN)
    run_in_terminal(page, json=False)
    out = capsys.readouterr().out
    assert re.search(r"Title(.|\n)*Text with code(.|\n)*\[b\]one\\u001b(.|\n)*Solution:(.|\n)*\n2\n(.|\n)*The end", out)
    picture = re.search(r"picture: (.*\.png)", out)
    assert picture is not None
    assert Path(picture[1]).read_bytes().startswith(b"\x89PNG")


def test_json(capsys: Capture) -> None:
    page = parse_page(Lesson(1, "test", "Title", Path("01-test.md")), MARKDOWN)
    run_in_terminal(page, json=True)
    blocks = json.loads(capsys.readouterr().out)["blocks"]
    assert [(block["line"], block["kind"], block["output"]) for block in blocks] == [
        (6, "example", "[b]one\x1b\n"),
        (11, "solution", "2\n"),
    ]
