"""Every name that the README and docs/ mention in code is real: commands, flags, presets, families, samples, Python."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import regard
from regard import cli, samples
from regard.baselines import BASELINES
from regard.checkpoint.families import FAMILIES, PRESETS
from regard.data.records import record_type_names
from regard.predict import Model
from regard.tasks import TASKS
from regard.training.from_scratch.ngram_language import ORDERS
from regard.training.settings import TRAINER_NAMES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*")
PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_-]*(\.\.\.)?|…")
# Flags of other programs in our examples: torchrun, uvicorn, pip, head and the like.
FOREIGN = {
    "--port",
    "--standalone",
    "--nproc-per-node",
    "--nnodes",
    "--rdzv-id",
    "--rdzv-backend",
    "--rdzv-endpoint",
    "--help",
    "--version",
}
STEMS = {name.split("-")[0] for name in PRESETS}


def flags_of(settings: Any, prefix: str = "") -> set[str]:
    result = set()
    for name, kind in get_type_hints(settings).items():
        if dataclasses.is_dataclass(kind):
            result |= flags_of(kind, "" if name == "settings" else f"{prefix}{name}.")
        else:
            result.add(f"--{prefix}{name.replace('_', '-')}")
    return result


FLAGS = {command: flags_of(about.arguments) for command, about in cli.COMMANDS.items()}
TRAINER = {f"--{name}" for name in TRAINER_NAMES}  # flags of transformers' Trainer: errors name ours
EVERY_FLAG = set().union(*FLAGS.values()) | FOREIGN | TRAINER


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def spans(page: Path) -> list[str]:
    return [" ".join(span.split()) for span in SPAN.findall(FENCE.sub("", text_of(page)))]


def blocks(page: Path, *kinds: str) -> list[str]:
    return [block for kind, block in FENCE.findall(text_of(page)) if kind in kinds]


def command_lines(page: Path) -> Iterator[str]:
    """What a user would type: lines of sh blocks, those after $ in console blocks, and spans that begin with regard."""
    for block in blocks(page, "sh"):
        yield from block.replace("\\\n", " ").splitlines()
    for block in blocks(page, "console"):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))
    yield from (span for span in spans(page) if re.match(r"regard( |$)", span))


def calls(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The command and the words after it, of every call of regard."""
    for line in command_lines(page):
        for part in re.split(r"\||;|&&", line):
            call = re.search(r"(?:^|\s)(?:regard|-m regard\.cli) (.*)", part)
            if call is not None and not call[1].startswith("-"):
                words = _words(call[1])
                yield words[0], words[1:]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line.split(" #")[0])
    except ValueError:  # a quote that a span leaves open
        return line.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_flags(page: Path) -> None:
    wrong = []
    for command, words in calls(page):
        if PLACEHOLDER.fullmatch(command):
            continue
        if command not in cli.COMMANDS:
            wrong.append(f"regard {command}")
            continue
        flags = {word.split("=")[0] for word in words if FLAG.fullmatch(word.split("=")[0])}
        known = FLAGS[command] | FOREIGN | (TRAINER if command in ("train", "pretrain") else set())
        wrong += [f"regard {command} {flag}" for flag in flags if flag not in known]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_in_the_text(page: Path) -> None:
    assert [flag for span in spans(page) for flag in FLAG.findall(span) if flag.rstrip(".") not in EVERY_FLAG] == []


def named_after(flag: str, page: Path) -> Iterator[str]:
    """The values of a flag in commands, and of the argument of that name in Python."""
    for _, words in calls(page):
        yield from (value for name, value in pairwise(words) if name == f"--{flag}")
    code = "\n".join([*blocks(page, "python"), *spans(page)])
    yield from re.findall(rf'\b{flag}="([^"]+)"', code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_presets_families_tasks_and_samples(page: Path) -> None:
    code = "\n".join([*blocks(page, "python"), *spans(page)])
    presets = {*named_after("preset", page), *re.findall(r'regard\.create\("([^"]+)"', code)}
    assert {name for name in presets if not PLACEHOLDER.fullmatch(name)} - {*PRESETS, *BASELINES, *ORDERS} == set()
    tasks = set(named_after("task", page))
    assert {name for name in tasks if not PLACEHOLDER.fullmatch(name)} - {*TASKS, *record_type_names()} == set()
    names = {
        words[0] for command, words in calls(page) if command == "sample" and words and not words[0].startswith("-")
    }
    names |= set(re.findall(r'samples\.path\("([^"]+)"\)', code))
    assert {name for name in names if not PLACEHOLDER.fullmatch(name)} - set(samples.NAMES) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_that_look_like_presets_are_presets(page: Path) -> None:
    """`bert-large` in a span reads like a preset, so it must be one."""
    words = {word for span in spans(page) for word in re.split(r"[\s,/]+", span)}
    looks = {word for word in words if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", word) and word.split("-")[0] in STEMS}
    assert looks - {*PRESETS, *FAMILIES} == set()


def resolves(name: str) -> bool:
    """Whether a dotted name under regard can be imported."""
    parts = name.split(".")
    result: Any = regard
    for place, part in enumerate(parts[1:], 1):
        if hasattr(result, part):
            result = getattr(result, part)
            continue
        try:
            result = importlib.import_module(".".join(parts[: place + 1]))
        except ImportError:
            return False
    return True


DOTTED = re.compile(r"(?<![\w./-])regard(?:\.[A-Za-z_]\w*)+")
FILES = {"regard.safetensors", "model.safetensors", "model.onnx"}  # names of files, not of modules


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_names(page: Path) -> None:
    code = [*blocks(page, "python"), *spans(page), *blocks(page, "sh", "console")]
    dotted = {name for part in code for name in DOTTED.findall(part)}
    assert {name for name in dotted - FILES if not resolves(name)} == set()
    methods = {name for part in code for name in re.findall(r"(?<![\w.-])[Mm]odel\.([a-z_]\w*)", part)}
    own = set(inspect.signature(Model.__init__).parameters)  # attributes that are set in the constructor
    assert {name for name in methods if not hasattr(Model, name) and f"model.{name}" not in FILES} - own == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_repository(page: Path) -> None:
    folders = ("src/", "docs/", "examples/", "benchmarks/", "tests/")
    code = [*spans(page), *blocks(page, "sh")]
    paths = {word for part in code for word in re.split(r"[\s\"']+", part) if word.startswith(folders)}
    assert {path for path in paths if "*" not in path and not (ROOT / path.split("::")[0]).exists()} == set()


def test_api_reference_has_every_public_name() -> None:
    paths = re.findall(r"^::: (\S+)$", text_of(ROOT / "docs" / "api.md"), re.MULTILINE)
    listed = {}
    for path in paths:
        module, _, name = path.rpartition(".")
        listed[name] = getattr(importlib.import_module(module), name)
    assert [name for name in regard.__all__ if name not in listed] == []
    assert [name for name in listed if listed[name] is not getattr(regard, name, None)] == []


def test_the_checks_see_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Use `--no-such-flag` or `bert-huge`, or `regard.nothing`.\n\n"
        "```sh\ntorchrun -m regard.cli pretrain x.txt --preset bert-large --shrad --out y\nregard lern x\n```\n"
    )
    for check in (
        test_commands_and_their_flags,
        test_flags_in_the_text,
        test_presets_families_tasks_and_samples,
        test_names_that_look_like_presets_are_presets,
        test_python_names,
    ):
        with pytest.raises(AssertionError):
            check(page)
