"""No command writes over what it reads, and each writes to pipes and devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.helpers import Capture

from regard import cli


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Path) -> Path:
    """A folder with data, links to it, and a link to a model."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{text},{label}\n" for text, label in (("warm", "good"), ("dull", "bad")) * 20)
    Path("x.csv").write_text(f"text,label\n{rows}")
    Path("x.npy").write_text("a text\n")
    Path("x.png").write_text("a text\n")
    Path("x.txt").write_text("a text\n")
    Path("link.csv").symlink_to("x.csv")
    Path("hard.csv").hardlink_to("x.csv")
    Path("model").symlink_to(trained)
    return tmp_path


SAME = [
    "predict model --input x.csv --output x.csv",
    "predict model --input x.csv --output ./link.csv",
    "predict model --input link.csv --output hard.csv",
    "predict model warm --output model/config.json",
    "predict model --input x.csv --output model/model.safetensors",
    "evaluate model x.csv --output x.csv",
    "evaluate model x.csv --output link.csv",
    "evaluate model x.csv --skip-bad x.csv",
    "evaluate model x.csv --output new --skip-bad ./new",
    "evaluate model x.csv --output model/run.json",
    "embed model --input x.npy --output x.npy",
    "translate model --input x.png --alignment-plot x.png",
    "vectors x.txt --out x.txt",
    "vectors --load x.txt --out x.txt",
    "check x.csv --fix x.csv",
    "check x.csv --html link.csv",
    "check x.csv --skip-bad x.csv",
    "check x.txt --dev x.csv --fix x.csv",
    "train x.csv --preset tiny-bert --out new --skip-bad x.csv",
    "train x.csv --dev hard.csv --preset tiny-bert --out new --skip-bad x.csv",
    "tokenizer model/tokenizer.json --out model --overwrite",
]


@pytest.mark.parametrize("line", SAME)
def test_the_input_is_not_written_over(here: Path, capsys: Capture, line: str) -> None:
    before = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    model = {path.name: path.read_bytes() for path in Path("model").iterdir()}
    status = cli.main(line.split())
    captured = capsys.readouterr()
    assert status in (1, 2), captured
    assert any(part in captured.err for part in ("is the input file", "same file", "that would be replaced")), (
        captured.err
    )
    after = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    assert {name: after.get(name) for name in before} == before
    assert {path.name: path.read_bytes() for path in Path("model").iterdir()} == model


def test_nothing_is_read_before(here: Path, capsys: Capture) -> None:
    """Not even the model, which does not exist."""
    assert cli.main(["predict", "nowhere", "--input", "x.csv", "--output", "x.csv"]) == 1
    assert "is the input file" in capsys.readouterr().err
    assert cli.main(["evaluate", "nowhere", "x.csv", "--output", "x.csv"]) == 1
    assert "is the input file" in capsys.readouterr().err


def test_links_are_written_through(here: Path, capsys: Capture) -> None:
    Path("below").mkdir()
    Path("answers.jsonl").symlink_to("below/real.jsonl")
    assert cli.main(["predict", "model", "warm", "dull", "--output", "answers.jsonl"]) == 0
    assert Path("answers.jsonl").is_symlink()
    assert len(Path("below/real.jsonl").read_text().splitlines()) == 2
    assert cli.main(["evaluate", "model", "x.csv", "--output", "answers.jsonl"]) == 0
    assert Path("answers.jsonl").is_symlink()
    assert len(Path("below/real.jsonl").read_text().splitlines()) == 40


def test_devices_stay(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["predict", "model", "warm", "--output", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    capfd.readouterr()
    assert cli.main(["predict", "model", "warm", "dull", "--output", "/dev/stdout", "--json"]) == 0
    captured = capfd.readouterr()
    assert [json.loads(line)["text"] for line in captured.out.splitlines()] == ["warm", "dull"]
    assert '"rows": 2' in captured.err
