"""Help of commands with many flags, in groups."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

import pytest
from tyro.conf import Positional, Suppress, arg

from regard import cli
from regard.cli.flags.help_groups import GROUPS, exit_with_help
from regard.cli.flags.unknown_flags import _kinds
from regard.training.pretrain import LABEL_SETTINGS
from regard.training.settings import Lora


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
