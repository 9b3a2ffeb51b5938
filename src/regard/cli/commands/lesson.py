"""`regard lesson`."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from regard._version import __version__
from regard.cli.arguments import Json, check_output
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_status, print_table, progress_bar

if TYPE_CHECKING:
    from regard.lessons.catalog import Lesson
    from regard.lessons.page import Page

HELP = """Open a lesson: the path from counting words to a served BERT, as pages whose code runs.

Examples:
  regard lesson                                 list all lessons
  regard lesson 7                               run lesson 7 and open its page in the browser
  regard lesson 7 --html lesson.html            one file that opens offline
  regard lesson 7 --notebook lesson.ipynb       a Jupyter notebook"""


@dataclass(frozen=True)
class LessonCommand:
    name: Annotated[
        Positional[str | None],
        arg(help="Number or name of the lesson; lists all if not given.", metavar="[LESSON]", help_behavior_hint=""),
    ] = None
    html: Annotated[Path | None, arg(help="Run the lesson and write its page to this file.", metavar="FILE.html")] = (
        None
    )
    notebook: Annotated[
        Path | None, arg(help="Write the lesson as a Jupyter notebook, without running it.", metavar="FILE.ipynb")
    ] = None
    no_browser: Annotated[bool, arg(help="Print the path of the page without opening a browser.")] = False
    json: Json = False


def run(command: LessonCommand) -> None:
    outputs = {"--html": command.html, "--notebook": command.notebook}
    flags = [flag for flag, value in outputs.items() if value]
    if command.name is None:
        if flags:
            raise UsageError(f"{flags[0]} was given without a lesson. Write regard lesson NUMBER {flags[0]}.")
        _list(json=command.json)
        return
    if len(flags) > 1:
        raise UsageError(f"{' and '.join(flags)} were given; give one of them.")
    for flag, path, ending in (("--html", command.html, ".html"), ("--notebook", command.notebook, ".ipynb")):
        if path is not None and path.suffix.lower() != ending:
            raise UsageError(f"{flag} {path}: expected a name that ends in {ending}.")
        check_output(path, flag)
    from regard.lessons.catalog import find_lesson
    from regard.lessons.page import read_page

    page = read_page(find_lesson(command.name))
    if command.notebook is not None:
        _write_notebook(page, command.notebook, json=command.json)
    elif command.html is not None:
        _print(page.lesson, _write_page(page, command.html), json=command.json)
    else:
        _open(page, command)


def _list(*, json: bool) -> None:
    from regard.lessons.catalog import all_lessons

    lessons = all_lessons()
    if json:
        print_json({"lessons": [{"number": one.number, "name": one.name, "title": one.title} for one in lessons]})
        return
    width = max(len(one.name) for one in lessons)
    print_table([(f"{one.number:>2}  {one.name.ljust(width)}", one.title) for one in lessons])
    print_status("open one with: regard lesson NUMBER")


def _write_notebook(page: Page, path: Path, *, json: bool) -> None:
    from importlib.util import find_spec

    from regard.lessons.notebook import write_notebook

    _print(page.lesson, write_notebook(page, path), json=json)
    if find_spec("notebook") or find_spec("jupyterlab"):
        print_status(f"open it with: jupyter lab {path}")
    else:
        print_status(f"Jupyter is not installed here. To open it: pip install jupyterlab, then jupyter lab {path}")


def _write_page(page: Page, path: Path) -> Path:
    from regard.lessons.html_file import write_html
    from regard.lessons.run import run_page

    with progress_bar() as progress:
        return write_html(run_page(page, progress=progress), path)


def _open(page: Page, command: LessonCommand) -> None:
    """Show the page in the browser; a page that ran before is read from the user's cache."""
    path = _cached_path(page.lesson)
    if not path.exists():
        print_status(f"running lesson {page.lesson.number}, {page.lesson.title}: up to a minute, once")
        _write_page(page, path)
    _print(page.lesson, path, json=command.json)
    if command.no_browser:
        return
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        print_status("no browser was found. Open the file above.")


def _cached_path(lesson: Lesson) -> Path:
    """The file of the page: another one for every version of the package and of the lesson."""
    from regard.user_cache import user_cache

    folder = user_cache("lessons") or Path(tempfile.mkdtemp(prefix="regard-lessons-"))
    digest = hashlib.sha256(__version__.encode() + lesson.path.read_bytes()).hexdigest()[:8]
    return folder / f"{lesson.stem}-{digest}.html"


def _print(lesson: Lesson, path: Path, *, json: bool) -> None:
    values: dict[str, Any] = {"number": lesson.number, "name": lesson.name, "file": str(path)}
    print_json(values) if json else print(path)


COMMAND = Command(name="lesson", arguments=LessonCommand, help=HELP, run=run)
