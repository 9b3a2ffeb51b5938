"""`regard sample` writes what the README's first commands need."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from regard import cli, samples
from regard.checkpoint.families import PRESETS
from regard.cli.commands import pretrain, train

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sample"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(samples.NAMES)
    assert cli.main(["sample", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["samples"]] == list(samples.NAMES)


@pytest.mark.parametrize("name", samples.NAMES)
def test_every_sample_is_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(samples.FILES[name])
    assert cli.main(["sample", name]) == 0
    assert file.read_bytes() == samples.path(name).read_bytes()
    captured = capsys.readouterr()
    assert captured.out == f"{file}: {samples.ABOUT[name]}\n"
    assert "try: regard " in captured.err
    assert cli.main(["sample", name]) == 0
    assert "is already there" in capsys.readouterr().out


@pytest.mark.parametrize("name", samples.NAMES)
def test_the_command_that_it_suggests_is_right(name: str) -> None:
    words = shlex.split(samples.TRY[name].format(file=samples.FILES[name]))
    assert words[0] == "regard"
    parse = {"train": train.parse, "pretrain": pretrain.parse}[words[1]]
    command = parse(words[2:], prog="regard", config=())
    assert isinstance(command, train.TrainCommand | pretrain.PretrainCommand)
    assert command.preset is None or command.preset in PRESETS


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    mine = Path("messages.csv")
    mine.write_text("mine")
    assert cli.main(["sample", "messages"]) == 1
    assert "holds something else. Use --out FILE, or --overwrite" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert cli.main(["sample", "messages", "--overwrite"]) == 0
    assert mine.read_bytes() == samples.path("messages").read_bytes()


def test_other_places(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data").mkdir()
    assert cli.main(["sample", "corpus", "--out", "data"]) == 0
    assert Path("data/corpus.txt").exists()
    assert cli.main(["sample", "corpus", "--out", "data/mine.txt"]) == 0
    assert Path("data/mine.txt").exists()


def test_the_first_commands_of_the_readme_run_from_an_empty_folder() -> None:
    """As they stand there, but for the length of the training."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("regard ")]
    assert [command.split()[1] for command in commands] == ["sample", "train", "predict"]
    for command in commands:
        arguments = shlex.split(command)[1:]
        short = ["--steps", "1", "--dev-fraction", "0"] if arguments[0] == "train" else []
        assert cli.main([*arguments, *short]) == 0, command
