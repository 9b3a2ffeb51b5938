"""Every example in the README and in docs/ runs and says what the page says it says.

`python` blocks share one namespace a page, and a `print(...)  # text` must print that text. In `console` blocks lines
after `$ ` are commands, the rest is what they say: `…` stands for anything in a line, and alone in a line for any
lines; `[exit N]` is the exit status. Other blocks (`sh`, trees) are shown, not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from regard import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)


@dataclass
class Command:
    line: str
    output: list[str] = field(default_factory=list)
    status: int = 0


def commands(block: str) -> list[Command]:
    results: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            results.append(Command(line[2:]))
        elif exits := re.fullmatch(r"\[exit (\d+)\]", line):
            results[-1].status = int(exits[1])
        else:
            results[-1].output.append(line)
    return results


def pattern(lines: list[str]) -> str:
    """A regular expression for the lines of a page."""
    parts = [r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\s*\n" for line in lines]
    return "".join(parts)


def execute(command: Command) -> tuple[int, str]:
    """Plain calls of regard in this process, which saves the import of torch; the rest through the shell."""
    words = shlex.split(command.line)
    if words[0] == "regard" and not set(command.line) & set("|<>;"):
        message = io.StringIO()
        with contextlib.redirect_stdout(message), contextlib.redirect_stderr(message):
            status = cli.main(words[1:])
        return status, message.getvalue()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.line],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def run_console(block: str) -> None:
    for command in commands(block):
        status, message = execute(command)
        assert status == command.status, f"{command.line}\n{message}"
        message = "".join(line.removeprefix("regard: ") for line in message.splitlines(keepends=True))
        assert re.fullmatch(pattern(command.output), message), f"{command.line}\n{message}"


def run_python(block: str, names: dict[str, Any]) -> None:
    message = io.StringIO()
    with contextlib.redirect_stdout(message):
        exec(compile(block, "example", "exec"), names)
    assert message.getvalue().splitlines() == PRINTED.findall(block)


NEED_MINILM = ("check.md",)  # pages whose numbers are others without it
MARKS = dict.fromkeys(NEED_MINILM, pytest.mark.minilm)


RUN = [page for page in PAGES if page.name != "tutorial.md"]  # tests/test_recipes.py runs that one
# A long page is cut into two tests at this heading. The first block of such a page writes the data of both.
CUTS = {"train.md": "## Cross-validation and a search for settings\n"}
Blocks = list[tuple[str, str]]  # the kind of each block, and its text


def parts() -> list[Any]:
    """The blocks of each page, or of each of its parts."""
    results = []
    for page in RUN:
        text, marks = page.read_text(encoding="utf-8"), MARKS.get(page.name, ())
        if page.name not in CUTS:
            results.append(pytest.param(FENCE.findall(text), id=page.name, marks=marks))
            continue
        first, _, second = text.partition(CUTS[page.name])
        blocks: Blocks = FENCE.findall(first)
        results.append(pytest.param(blocks, id=f"{page.name}-1", marks=marks))
        results.append(pytest.param([blocks[0], *FENCE.findall(second)], id=f"{page.name}-2", marks=marks))
    return results


@pytest.mark.parametrize("blocks", parts())
def test_examples_run(blocks: Blocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for kind, block in blocks:
        if kind == "python":
            run_python(block, names)
        elif kind == "console":
            run_console(block)
        else:
            assert kind in ("", "sh")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_command_has_its_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in cli.COMMANDS:
        assert (ROOT / "docs" / f"{command}.md").exists()
        assert f"(docs/{command}.md)" in readme


def flags(settings: Any, prefix: str = "", *, nested: bool = True) -> list[str]:
    """Flags of a command; the settings of a training have no name before theirs."""
    results: list[str] = []
    for name, kind in get_type_hints(settings).items():
        if is_dataclass(kind):
            results += flags(kind, "" if name == "settings" else f"{prefix}{name}.") if nested else []
        elif name not in ("model", "texts", "text", "files", "data", "queries", "name", "more", "what", "url"):
            results.append(f"--{prefix}{name.replace('_', '-')}")
    return results


def test_every_setting_of_a_command_is_on_its_page() -> None:
    for command, about in cli.COMMANDS.items():
        page = (ROOT / "docs" / f"{command}.md").read_text(encoding="utf-8")
        known = flags(about.arguments, nested=command == "train")  # which is where those of a training are told
        assert [flag for flag in known if flag not in page] == [], command


def test_the_tree_of_the_readme_is_the_tree() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    entries = {
        path.name + ("/" if path.is_dir() else "")
        for path in (ROOT / "src" / "regard").iterdir()
        if not path.name.startswith("_") and path.name != "py.typed"
    }
    assert entries == set(re.findall(r"^  (\w+(?:\.py|/)) ", readme, re.MULTILINE))


@pytest.mark.minilm
def test_demo_marks_the_sentence_that_is_nearest_and_trains(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py", "--quick", "--out", tmp_path],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\s+\d\s\s\S", line)]
    nearest = [next(i for i, cell in enumerate(row[-8:]) if cell.endswith("*")) for row in rows]
    assert nearest == [1, 0, 3, 2, 5, 4, 7, 6]
    assert "76 rows" in done.stdout.split("$ regard evaluate")[1]
    assert (tmp_path / "demo" / "curves.png").exists()
    assert "100 rows" in done.stdout.split("$ regard evaluate")[2]
    assert (tmp_path / "demo-alignment.png").exists()
