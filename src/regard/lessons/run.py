"""Run the code of a lesson: what each block prints, and the figures it leaves open."""

from __future__ import annotations

import contextlib
import io
import linecache
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from regard.errors import RegardError
from regard.lessons.page import Code, Page
from regard.progress import OnProgress, Progress
from regard.random_state import preserved_random_state

if TYPE_CHECKING:
    from types import ModuleType

DOTS_PER_INCH = 160  # twice the size at which a page shows a figure


class LessonError(RegardError):
    """A block of a lesson that raised an error, or whose check failed; `__cause__` is that error."""


@dataclass(frozen=True)
class BlockResult:
    """What a block printed, its figures as PNG files, and its duration."""

    code: Code
    output: str
    figures: tuple[bytes, ...]
    seconds: float


@dataclass(frozen=True)
class PageResult:
    """A page and the result of each of its blocks, in order."""

    page: Page
    blocks: tuple[BlockResult, ...]


def run_page(page: Page, *, progress: OnProgress | None = None) -> PageResult:
    """Run every block, in order and in one namespace, inside an empty temporary folder.

    progress: called with the number of blocks that have run.

    Raises LessonError, with the line of the page, where a block raises an error.
    """
    namespace: dict[str, Any] = {"__name__": "__lesson__"}
    results = []
    with _workspace() as pyplot:
        for number, code in enumerate(page.blocks):
            if progress is not None:
                progress(Progress("blocks", number, len(page.blocks)))
            results.append(_run_block(page, code, namespace, pyplot))
    if progress is not None:
        progress(Progress("blocks", len(results), len(results)))
    return PageResult(page, tuple(results))


@contextlib.contextmanager
def _workspace() -> Iterator[ModuleType]:
    """An empty folder, pyplot without windows, and a random state that is restored afterwards."""
    import matplotlib
    from matplotlib import pyplot

    backend = matplotlib.get_backend()
    with (
        tempfile.TemporaryDirectory(prefix="regard-lesson-") as folder,
        contextlib.chdir(folder),
        preserved_random_state(torch.device("cpu")),
        matplotlib.rc_context(),
    ):
        matplotlib.use("agg")
        open_before = pyplot.get_fignums()
        try:
            yield pyplot
        finally:
            for number in set(pyplot.get_fignums()) - set(open_before):
                pyplot.close(number)
            matplotlib.use(backend)


def _run_block(page: Page, code: Code, namespace: dict[str, Any], pyplot: ModuleType) -> BlockResult:
    printed = io.StringIO()
    name = f"<lesson {page.lesson.stem}, line {code.line}>"
    linecache.cache[name] = (len(code.source), None, code.source.splitlines(keepends=True), name)  # for tracebacks
    before = set(pyplot.get_fignums())
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code.source, name, "exec"), namespace)
    except RegardError:
        raise  # such as a missing extra, which says how to install it
    except Exception as error:
        raise LessonError(_message(page, code, error, name)) from error
    seconds = time.perf_counter() - started
    figures = tuple(_png(pyplot, number) for number in pyplot.get_fignums() if number not in before)
    return BlockResult(code, printed.getvalue(), figures, seconds)


def _message(page: Page, code: Code, error: Exception, name: str) -> str:
    """The line of the page that failed, the line itself, and the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    if isinstance(error, SyntaxError) and error.lineno is not None:
        lines = [error.lineno]
    line = lines[-1] if lines and lines[-1] is not None else 1
    source = linecache.getline(name, line).strip()
    what = "a check failed" if isinstance(error, AssertionError) else type(error).__name__
    detail = f": {error}" if str(error) else ""
    return (
        f"lesson {page.lesson.number}, {page.lesson.path.name} line {code.line + line - 1}: {what}{detail}\n  {source}"
    )


def _png(pyplot: ModuleType, number: int) -> bytes:
    figure = pyplot.figure(number)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    pyplot.close(figure)
    return file.getvalue()
