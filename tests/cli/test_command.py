"""A command is one file that exports one object: a toy one, registered from outside, works as the others do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
from tyro.conf import Positional, arg

from regard import cli
from regard.cli.arguments import Json
from regard.cli.command import Command
from regard.cli.commands import SUMMARIES, Commands
from regard.cli.output import UsageError, print_json

HELP = """Count the words of texts.

Examples:
  regard toy-words "a text" --json"""


@dataclass(frozen=True)
class CountCommand:
    texts: Annotated[Positional[tuple[str, ...]], arg(help="Texts whose words are counted.", metavar="TEXT ...")] = ()
    min_length: Annotated[int, arg(help="Shortest word that is counted, in characters.")] = 1
    json: Json = False


def run(command: CountCommand) -> None:
    if not command.texts:
        raise UsageError("no text was given. Write it after the command.")
    for text in command.texts:
        count = sum(len(word) >= command.min_length for word in text.split())
        print_json({"text": text, "words": count}) if command.json else print(count)


COMMAND = Command(name="toy-words", arguments=CountCommand, help=HELP, run=run)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "COMMANDS", Commands())
    cli.register(COMMAND)


def test_a_toy_command_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["toy-words", "one two three", "--min-length", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"text": "one two three", "words": 1}


def test_a_toy_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "\n  toy-words Count the words of texts.\n" in capsys.readouterr().out
    assert cli.main(["toy-words", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "regard toy-words" in shown
    assert "Shortest word that is counted, in characters. (default: 1)" in " ".join(shown.replace("│", " ").split())


def test_a_toy_command_reports_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["toy-words"]) == 2
    assert capsys.readouterr().err == "regard: no text was given. Write it after the command.\n"
    assert cli.main(["toy-word"]) == 2
    assert 'Did you mean "toy-words"?' in capsys.readouterr().err


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_is_the_first_line_of_the_help(name: str) -> None:
    command = Commands()[name]
    assert (command.name, command.help.splitlines()[0]) == (name, SUMMARIES[name])


def test_commands_are_a_mapping_that_imports_on_use() -> None:
    commands = Commands()
    assert list(commands) == list(SUMMARIES)
    assert len(commands) == len(SUMMARIES)
    assert "nope" not in commands
    with pytest.raises(KeyError, match="nope"):
        commands["nope"]
    commands["toy-words"] = COMMAND
    assert commands.summaries()["toy-words"] == "Count the words of texts."
    del commands["toy-words"]
    assert list(commands) == list(SUMMARIES)


def test_every_file_of_commands_is_listed_and_named_after_its_command() -> None:
    from pathlib import Path

    import regard.cli.commands as package

    assert package.__file__ is not None
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == set(SUMMARIES) == set(cli.COMMANDS) - {"toy-words"}
