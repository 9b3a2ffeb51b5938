"""Flags that a command does not have."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
from tyro.conf import Positional, arg

from regard import cli
from regard.cli.command import Command
from regard.cli.flags.unknown_flags import check_flags
from regard.cli.output import UsageError


@dataclass(frozen=True)
class Inner:
    rank: int = 0


@dataclass(frozen=True)
class Arguments:
    data: Annotated[Positional[str], arg(help="a file")]
    top_rows: int = 10
    out: Annotated[str, arg(name="output", aliases=("-o", "--to"))] = ""
    lora: Inner = field(default_factory=Inner)
    flat: Annotated[Inner, arg(name="")] = field(default_factory=Inner)


COMMAND = Command(name="toy", arguments=Arguments, help="", run=lambda arguments: None)


def test_several_files_are_a_pattern_in_quotes(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    for file in files:
        Path(file).touch()
    with pytest.raises(UsageError, match=r"DATA is one file, but 2 were given: .* in quotes, such as '\*\.csv'"):
        check_flags(COMMAND, [*files, "--top-rows", "3"])
    check_flags(COMMAND, [files[0], "no-file"])  # the parser reports what it does not know


def test_columns_are_separated_by_commas() -> None:
    with pytest.raises(UsageError, match="--columns first=a,second=b,label=c"):
        check_flags(COMMAND, ["--columns", "first=a,", "second=b", "label=c", "--nonsense"])
    with pytest.raises(UsageError, match="--columns is not a flag"):
        check_flags(COMMAND, ["--columns", "first=a,second=b", "data.csv"])


@pytest.mark.parametrize(
    "flag",
    ["--top-rows", "--top_rows=3", "--output", "--to", "--lora.rank", "--rank", "--tyro-print-completion"],
)
def test_known_flags_pass(flag: str) -> None:
    check_flags(COMMAND, [flag, "3"])


@pytest.mark.parametrize("flag", ["--data", "--out", "--lora", "--rows"])
def test_positional_arguments_and_field_names_are_no_flags(flag: str) -> None:
    with pytest.raises(UsageError, match=rf"^{flag} is not a flag of regard toy\."):
        check_flags(COMMAND, ["a.csv", flag, "3"])


def test_the_message_names_the_nearest_flag_and_the_help() -> None:
    message = r'--top-row is not a flag of regard toy\. Did you mean "?--top-rows"?\? See regard toy --help\.'
    with pytest.raises(UsageError, match=message):
        check_flags(COMMAND, ["--top-row=3"])


@pytest.mark.parametrize("words", [["--", "--nope"], ["--nope", "--help"], ["-h", "--nope"], ["-5", "--5", "a --nope"]])
def test_words_that_are_not_checked(words: list[str]) -> None:
    """Arguments after `--`, anything beside a request for help, numbers and texts."""
    check_flags(COMMAND, words)


@pytest.mark.parametrize(
    ("command", "flag", "ours"),
    [
        ("train", "--learning_rate", "--lr"),
        ("train", "--output-dir", "--out"),
        ("pretrain", "--num_train_epochs", "--epochs"),
    ],
)
def test_flags_of_the_trainer_lead_to_ours(command: str, flag: str, ours: str) -> None:
    message = rf"^{flag} is not a flag of regard {command}; regard calls it {ours}\. See regard {command} --help\."
    with pytest.raises(UsageError, match=message):
        check_flags(cli.COMMANDS[command], ["a.csv", flag, "1"])
    with pytest.raises(UsageError, match=f"^{flag} is not a flag of regard info"):
        check_flags(cli.COMMANDS["info"], ["minilm", flag, "1"])


@pytest.mark.parametrize(
    "words",
    [
        ["--freeze", "embeddings", "a.csv", "--out", "run"],
        ["--out=run", "--json", "--freeze=embeddings", "a.csv"],
        ["--freeze", "a.csv"],
    ],
)
def test_a_flag_that_takes_the_data_too_is_named(words: list[str]) -> None:
    message = r"^DATA is missing: --freeze takes all words after it \(.*a\.csv\)\. Write DATA before the flags\."
    with pytest.raises(UsageError, match=message):
        check_flags(cli.COMMANDS["train"], words)


@pytest.mark.parametrize(
    "words",
    [
        ["a.csv", "--freeze", "embeddings", "0"],
        ["--freeze", "embeddings", "--", "a.csv"],
        ["--freeze", "embeddings", "--out", "run", "a.csv"],
        ["--freeze", "embeddings", "--json", "a.csv"],
        ["--freeze", "embeddings", "--lr=1", "a.csv"],
        ["--lr", "1"],
    ],
)
def test_a_flag_may_take_several_values(words: list[str]) -> None:
    check_flags(cli.COMMANDS["train"], words)
