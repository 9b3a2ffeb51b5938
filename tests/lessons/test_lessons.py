"""Lessons are listed, read, run, and written as a page or a notebook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from regard.errors import InputError, MissingExtra
from regard.lessons.catalog import Lesson, all_lessons, find_lesson
from regard.lessons.html_file import lesson_html, write_html
from regard.lessons.notebook import write_notebook
from regard.lessons.page import Code, Page, Text, parse_page, read_page
from regard.lessons.run import LessonError, PageResult, run_page
from regard.lessons.style import STYLE
from regard.progress import Progress

# Lessons are listed in order and looked up by number and name.


def test_lessons_are_numbered_without_repeats() -> None:
    numbers = [lesson.number for lesson in all_lessons()]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert all(lesson.title and not lesson.title.startswith("#") for lesson in all_lessons())


@pytest.mark.parametrize("name", ["1", "01", "counting", "Counting", "01-counting"])
def test_a_lesson_by_number_or_name(name: str) -> None:
    assert find_lesson(name).stem == "01-counting"


def test_unknown_lessons_name_the_nearest() -> None:
    with pytest.raises(InputError, match=r'"countin".*Did you mean "counting"'):
        find_lesson("countin")
    with pytest.raises(InputError, match=r"no lesson 0; expected a number from 1 to .*The nearest is 1"):
        find_lesson("0")


# A page is split into text and code; the line of a block is its line in the file.


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


# Blocks run in order in one namespace; their outputs and figures are kept, and errors name the line of the page.


def run(*blocks: str) -> PageResult:
    fences = "\n".join(f"```python\n{block}\n```" for block in blocks)
    return run_page(parse_page(Lesson(1, "test", "Title", Path("01-test.md")), f"# Title\n\n{fences}"))


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.stem)
def test_every_lesson_runs(lesson: Lesson) -> None:
    result = run_page(read_page(lesson))
    assert [block.code for block in result.blocks] == result.page.blocks


def test_one_namespace_and_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("x = 2\nprint('a')", "from pathlib import Path\nPath('file').touch()\nprint(x + 1)")
    assert [block.output for block in result.blocks] == ["a\n", "3\n"]
    assert list(tmp_path.iterdir()) == []


def test_open_figures_are_drawn_and_closed() -> None:
    from matplotlib import pyplot

    draw = "from matplotlib import pyplot\npyplot.subplots(figsize=(1, 1))"
    result = run(draw, f"{draw}\npyplot.subplots()", f"{draw}\npyplot.close()")
    assert [len(block.figures) for block in result.blocks] == [1, 2, 0]
    assert result.blocks[0].figures[0].startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []


def test_the_random_state_of_the_caller_is_kept() -> None:
    state = torch.get_rng_state()
    run("import torch\ntorch.manual_seed(5)\ntorch.rand(3)")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("x = 1\nassert x > 1, 'too small'", "01-test.md line 5: a check failed: too small\n  assert x > 1"),
        ("x = 1\n\n1 / 0", "01-test.md line 6: ZeroDivisionError: division by zero"),
        ("x = 1\nx = = 2", "01-test.md line 5: SyntaxError"),
    ],
)
def test_errors_name_the_line(block: str, message: str) -> None:
    with pytest.raises(LessonError) as error:
        run(block)
    assert message in str(error.value)


def test_a_missing_extra_stays_what_it_is() -> None:
    with pytest.raises(MissingExtra, match=r"regard\[minilm\]"):
        run("from regard.errors import MissingExtra\nraise MissingExtra('minilm', 'minilm')")


def test_progress() -> None:
    calls: list[Progress] = []
    page = parse_page(Lesson(1, "test", "Title", Path("01-test.md")), "# T\n\n```python\n1\n```\n```python\n2\n```\n")
    run_page(page, progress=calls.append)
    assert [(call.stage, call.done, call.total) for call in calls] == [("blocks", n, 2) for n in (0, 1, 2)]


# The page of a lesson is one file: it loads nothing, and text of the lesson is escaped.


MARKDOWN_HTML_FILE = """# Title <b>

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
    result = run_page(parse_page(Lesson(1, "test", "Title <b>", Path("01-test.md")), MARKDOWN_HTML_FILE))
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


# A notebook holds every part of a page as a cell.


MARKDOWN_NOTEBOOK = "# Title\n\nText.\n\n```python\nx = 1\nprint(x)\n```\n```python check\nassert x == 1\n```\n"


def test_cells(tmp_path: Path) -> None:
    page = parse_page(Lesson(1, "test", "Title", Path("01-test.md")), MARKDOWN_NOTEBOOK)
    notebook = json.loads(write_notebook(page, tmp_path / "a.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code", "markdown", "code"]
    assert "empty folder" in cells[1]["source"][0]
    assert cells[2]["source"] == ["x = 1\n", "print(x)"]
    assert cells[2]["outputs"] == []
    assert cells[4]["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["check"]}
    assert len({cell["id"] for cell in cells}) == 5


# Pages are readable in the dark and on a phone.


def test_the_style_has_both_and_loads_nothing() -> None:
    assert "prefers-color-scheme: dark" in STYLE
    assert "max-width: 520px" in STYLE
    assert "url(" not in STYLE
