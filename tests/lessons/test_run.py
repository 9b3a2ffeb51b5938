"""Blocks run in order in one namespace; their outputs and figures are kept, and errors name the line of the page."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.errors import MissingExtra
from regard.lessons.catalog import Lesson, all_lessons
from regard.lessons.page import parse_page, read_page
from regard.lessons.run import LessonError, PageResult, run_page
from regard.progress import Progress


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
