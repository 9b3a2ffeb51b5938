"""`regard train` with --folds, --search and --time: what it prints, and which flags do not go together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from regard import cli

pytest.importorskip("optuna")


def run(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_folds_are_printed(reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", str(reviews_csv), "--preset", "ngram", "--folds", "2", "--out", str(tmp_path / "run")]
    code, out, err = run(argv, capsys)
    assert code == 0
    assert "fold 2 of 2" in err
    assert "final training on all" in err
    assert f"regard predict {tmp_path / 'run'}" in out
    assert "each scored by a model that was not trained on it" in out
    code, out, _ = run([*argv[:-1], str(tmp_path / "other"), "--json"], capsys)
    assert code == 0
    assert len(json.loads(out)["folds"]) == 2


def test_trials_are_printed(reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", str(reviews_csv), "--preset", "tiny-bert", "--epochs", "1", "--search", "0.1s"]
    code, out, err = run([*argv, "--out", str(tmp_path / "run")], capsys)
    assert code == 0
    assert "trial 1" in err
    assert "default settings" in out
    assert "that chose nothing" in out
    assert f"{tmp_path / 'run'}/report.html" in out
    assert "Note: nothing was searched: the time was enough for one trial only" in out
    code, out, _ = run([*argv, "--out", str(tmp_path / "other"), "--json"], capsys)
    assert code == 0
    assert json.loads(out)["metric"] == "accuracy"


def test_seeds_are_printed(reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", str(reviews_csv), "--preset", "tiny-bert", "--epochs", "1", "--time", "0.1s"]
    code, out, err = run([*argv, "--out", str(tmp_path / "run")], capsys)
    assert code == 0
    assert "training 1, 0:00 left" in err
    assert "seed 0" in out
    assert "of seed 0, on" in out
    assert f"regard evaluate {tmp_path / 'run'} TEST-DATA" in out
    assert re.search(r"time +\d+ s; another seed would need \d+:\d\d", out)
    code, out, _ = run([*argv, "--out", str(tmp_path / "other"), "--json"], capsys)
    assert code == 0
    assert json.loads(out)["used"] == [0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--folds", "2", "--search", "1m"], "--folds and --search were given"),
        (["--folds", "2", "--time", "1m"], "--folds and --time were given"),
        (["--time", "soon"], "expected a duration such as"),
        (["--folds", "2", "--dev", "valid.csv"], "--dev was given with --folds"),
        (["--search", "1m", "--resume"], "goes on by itself"),
        (["--folds", "1"], "expected at least 2"),
    ],
)
def test_flags_that_do_not_go_together(
    reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    code, out, err = run(
        ["train", str(reviews_csv), "--preset", "tiny-bert", "--out", str(tmp_path / "run"), *flags], capsys
    )
    assert code in (1, 2)
    assert out == ""
    assert message in " ".join(err.split())
