"""Help of commands: every flag in a group, with a line that the docs repeat."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

import pytest
from tyro.conf import Positional, Suppress, arg

from regard import cli
from regard.cli import arguments
from regard.cli.flags.help_groups import GROUPS, exit_with_help
from regard.cli.flags.unknown_flags import _kinds
from regard.data.formats.registry import format_names
from regard.data.records import all_roles, record_type_names
from regard.tasks import TASKS
from regard.training.from_scratch.model_settings import ModelSettings
from regard.training.pretrain import LABEL_SETTINGS
from regard.training.settings import Lora, Settings


@dataclass(frozen=True)
class Toy:
    data: Annotated[Positional[str], arg(help="A file.")]
    lr: Annotated[float, arg(help="Learning rate.")] = 0.5
    other: Annotated[int, arg(help="In no group.")] = 3
    seed: Suppress[int] = 0
    lora: Annotated[Lora, arg(name="lora")] = field(default_factory=Lora)


def test_flags_are_shown_with_help_and_default_in_their_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        exit_with_help(Toy, prog="toy")
    assert stopped.value.code == 0
    boxes = sections(capsys.readouterr().out)
    assert list(boxes) == ["positional arguments", "options", "LoRA options", "Optimization options"]
    assert "A file." in boxes["positional arguments"]
    assert re.search(r"--other INT +In no group\. \(default: 3\)", boxes["options"])
    assert re.search(r"--lr FLOAT +Learning rate\. \(default: 0\.5\)", boxes["Optimization options"])
    assert "--seed" not in boxes["Optimization options"]  # suppressed
    assert re.findall(r"--([\w.]+)", boxes["LoRA options"]) == ["lora.rank", "lora.alpha", "lora.dropout"]


def test_no_flag_is_in_two_groups() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["train", "pretrain"])
def test_every_flag_is_in_a_group_of_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A new flag belongs in `regard.cli.flags.help_groups.GROUPS`."""
    assert cli.main([name, "--help"]) == 0
    boxes = sections(capsys.readouterr().out)
    flags = {title: re.findall(r"^ {1,4}--([a-z][\w.-]*)", box, re.MULTILINE) for title, box in boxes.items()}
    own = [title for title in GROUPS if name == "train" or title != "Selection"]
    assert list(flags) == ["positional arguments", "options", *(f"{title} options" for title in own)]
    shown = [flag for one in flags.values() for flag in one]
    assert len(shown) == len(set(shown))
    known = {flag.replace("_", "-") for flag in _kinds(cli.COMMANDS[name].arguments)}
    hidden = set() if name == "train" else {setting.replace("_", "-") for setting in LABEL_SETTINGS}
    assert set(shown) == known - hidden
    assert flags["options"] == (["config"] if name == "train" else [])


def sections(output: str) -> dict[str, str]:
    """The text of each group of flags by its title. Without a terminal, tyro shows lines instead of boxes."""
    parts = re.split(r"\n ([\w ]+?) *\n -+ *\n", output)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_tasks_formats_and_roles_are_those_of_the_registries() -> None:
    assert set(arguments.TRAIN_TASKS) == set(TASKS)
    assert set(arguments.CHECK_TASKS) == set(record_type_names())
    assert set(arguments.FORMATS) == set(format_names())
    assert set(arguments.ROLES) <= set(all_roles())
    predicting = [task for task in TASKS.values() if task.command == "predict"]
    assert set(arguments.INPUT_ROLES) == {role for task in predicting for role in task.input_roles}


def test_pretrain_hides_settings_that_it_does_not_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pretrain", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    for name in LABEL_SETTINGS:
        assert not any(f"--{name.replace('_', '-')}" in line for line in lines)
    assert any("--weight-decay" in line for line in lines)


def test_settings_in_the_docs_are_the_help_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """The table in docs/train.md has every setting, in the order of the help, with its help line."""
    assert cli.main(["train", "--help"]) == 0
    help_text = " ".join(capsys.readouterr().out.split())
    page = (Path(__file__).parents[3] / "docs" / "train.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `--([\w.-]+)[^|`]*` \| ([^|]+) \| (.+) \|$", page.split("## Settings")[1], re.MULTILINE)
    settings = {field.name for field in fields(Settings)} - {"lora", "model"}
    settings |= {f"lora.{field.name}" for field in fields(Lora)} | {f"model.{name}" for name in _kinds(ModelSettings)}
    order = [name.replace("_", "-") for names in GROUPS.values() for name in names if name in settings]
    assert [flag for flag, _, _ in rows] == order
    for flag, default, meaning in rows:
        assert re.search(rf"--{re.escape(flag)}\b.{{0,60}}? {re.escape(meaning.replace('`', ''))}", help_text), flag
        value = flag_default(flag)
        if isinstance(value, float | int) and not isinstance(value, bool):
            assert float(default.strip("*")) == value, flag
        elif isinstance(value, str):
            assert default.strip("`*") == value, flag


@pytest.mark.parametrize("name", ["check", "train", "pretrain", "evaluate", "predict"])
def test_page_of_a_command_names_its_flags(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / f"{name}.md").read_text(encoding="utf-8")
    settings = {field.name for field in fields(Settings)} if name == "pretrain" else set()  # docs/train.md has these
    flags = {flag for flag in _kinds(cli.COMMANDS[name].arguments) if flag.partition(".")[0] not in settings}
    missing = [flag for flag in flags if not re.search(rf"`[^`\n]*--{flag.replace('_', '-')}\b", page)]
    assert missing == []


def flag_default(flag: str) -> object:
    name = flag.replace("-", "_")
    value: object = Settings()
    for part in name.split("."):
        value = getattr(value, part)
    return value
