"""The page of a lesson is one file: it loads nothing, and text of the lesson is escaped."""

from __future__ import annotations

import re
from pathlib import Path

from regard.lessons.catalog import Lesson
from regard.lessons.html_file import lesson_html, write_html
from regard.lessons.page import parse_page
from regard.lessons.run import run_page
from regard.lessons.style import STYLE

MARKDOWN = """# Title <b>

| a | b |
|---|---|
| 1 | <script>alert(1)</script> |

```python
from matplotlib import pyplot
print("<i>")
pyplot.subplots(figsize=(2, 1))
```
```python check
assert 1 + 1 == 2
```
"""


def test_page(tmp_path: Path) -> None:
    result = run_page(parse_page(Lesson(1, "test", "Title <b>", Path("01-test.md")), MARKDOWN))
    html = write_html(result, tmp_path / "a.html").read_text(encoding="utf-8")
    assert html == lesson_html(result)
    assert STYLE in html
    assert "<h1>Title &lt;b&gt;</h1>" in html
    assert '<pre class="output">&lt;i&gt;</pre>' in html
    assert "<td>1</td>" in html
    assert "<script" not in html
    assert "<summary>What this page checks</summary>" in html
    assert '<img width="192"' in html
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)"', html))
