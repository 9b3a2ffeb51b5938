"""Settings of a command from a TOML file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.helpers import Capture, run

from regard import samples
from regard.cli.commands.train import parse
from regard.cli.flags.toml import format_config


def test_a_file_of_settings_stands_behind_the_flags(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'data = "reviews.csv"\npreset = "tiny-bert"\nepochs = 3\nlr = 1e-4\nfreeze = ["embeddings"]\n'
        '[lora]\nrank = 2\n[columns]\ntext = "opinion"\nlabel = "stars"\n'
    )
    result = parse(["--config", str(file), "--out", "o", "--epochs", "1", "--lora.alpha", "8"])
    assert (result.data, result.preset, result.columns) == ("reviews.csv", "tiny-bert", "text=opinion,label=stars")
    assert (result.settings.epochs, result.settings.lr, result.settings.freeze) == (1, 1e-4, ("embeddings",))
    assert (result.settings.lora.rank, result.settings.lora.alpha) == (2, 8)
    assert parse([f"--config={file}", "other.csv", "--out", "o"]).data == "other.csv"


def test_settings_are_written_as_they_are_read(tmp_path: Path) -> None:
    values = {"data": 'a "b"\\c.csv', "preset": None, "epochs": 3.0, "freeze": ("embeddings", "1"), "fsdp": False}
    text = format_config({**values, "lora": {"rank": 2, "alpha": 8.0, "dropout": 0.0}, "lr": 1e-05})
    assert text.splitlines()[0] == r'data = "a \"b\"\\c.csv"'
    (tmp_path / "run.toml").write_text(text)
    result = parse(["--config", str(tmp_path / "run.toml"), "--out", "o"])
    assert (result.data, result.settings.epochs, result.settings.lr) == ('a "b"\\c.csv', 3, 1e-5)
    assert (result.settings.freeze, result.settings.lora.rank) == (("embeddings", "1"), 2)


@pytest.mark.parametrize("flags", [[], ["--batch-size", "8"], ["--steps", "7", "--columns", "text=text,label=label"]])
def test_chosen_settings_are_printed_and_read_again(capsys: Capture, tmp_path: Path, flags: list[str]) -> None:
    data = str(samples.path("messages"))
    status, out, _ = run(capsys, "train", data, "--preset", "tiny-bert", "--print-config", *flags)
    assert status == 0
    (tmp_path / "run.toml").write_text(out)
    status, again, _ = run(capsys, "train", "--config", tmp_path / "run.toml", "--print-config")
    assert (status, again) == (0, out)
    status, text, _ = run(capsys, "train", data, "--preset", "tiny-bert", "--print-config", *flags, "--json")
    assert json.loads(text)["lr"] > 0
    assert list(tmp_path.iterdir()) == [tmp_path / "run.toml"]


def test_the_settings_of_a_baseline_are_printed_and_read_again(capsys: Capture, tmp_path: Path) -> None:
    status, out, _ = run(capsys, "train", samples.path("messages"), "--preset", "ngram", "--print-config")
    assert status == 0
    assert "epochs" not in out
    (tmp_path / "run.toml").write_text(out)
    status, again, _ = run(capsys, "train", "--config", tmp_path / "run.toml", "--print-config")
    assert (status, again) == (0, out)


def test_defaults_of_a_baseline_have_no_training_steps(capsys: Capture) -> None:
    status, out, _ = run(capsys, "train", samples.path("messages"), "--preset", "ngram", "--explain-defaults")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["setting", "task", "dev_fraction"]
