"""`regard train` and `regard evaluate`: flags, files of settings, old names, what is said and where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.helpers import QUICK, Capture, run, start

from regard.cli.commands.train import parse, scores_line
from regard.training.result import TrainResult


def test_train_says_what_it_does_and_scores(capsys: Capture, reviews_csv: Path, tmp_path: Path) -> None:
    arguments = ("train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--log-every", "2")
    status, out, err = run(capsys, *arguments)
    assert status == 0
    assert "data: csv for classify (text=text, label=label)" in err
    assert "rows: 72 training rows, 8 validation rows (10 % split)" in err
    assert "epoch 1.0, step 9 of 9: accuracy " in err
    assert out.splitlines()[1].startswith("accuracy  ")
    assert "\nScores on 8 validation rows.\n" in out
    assert f"regard predict {tmp_path / 'run'}" in out
    _, again, _ = run(capsys, *arguments, "--resume")
    assert "\nloss  " in out
    assert {line for line in again.splitlines() if line.startswith(("loss", "dev", "accuracy", "Scores"))} == {
        line for line in out.splitlines() if line.startswith(("loss", "dev", "accuracy", "Scores"))
    }


@pytest.mark.parametrize(
    ("repeats", "refit", "words"),
    [
        (1, None, "."),
        (3, None, ", of the mean of 3 trainings."),
        (1, "network", ", of a training without them; the model in the folder is trained on all rows."),
        (3, "network", ", of the mean of 3 trainings without them; the model in the folder is trained on all rows."),
        (1, "head", ", of a training without them; the head of the model in the folder is fitted on all rows."),
    ],
)
def test_what_the_scores_are_of(repeats: int, refit: Any, words: str) -> None:
    result = TrainResult("classify", 72, {}, 1.0, "run", 10, 100, 0, False, repeats=repeats, validation_rows=8)
    assert scores_line(replace(result, refit=refit)) == f"Scores on 8 validation rows{words}"


def test_train_as_json(capsys: Capture, reviews_csv: Path, tmp_path: Path) -> None:
    status, out, _ = run(capsys, "train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--json")
    content = json.loads(out)
    assert status == 0
    assert set(content) == {"task", "rows", "scores", "seconds", "folder"}
    assert set(content["scores"]["accuracy"]) == {"value", "low", "high"}
    assert (content["task"], content["rows"], content["folder"]) == ("classify", 72, str(tmp_path / "run"))


def test_of_several_ranks_the_first_alone_gives_the_result(reviews_csv: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "regard.cli"]
    argv = ["train", str(reviews_csv), "--out", str(tmp_path / "run"), *QUICK, "--json"]
    done = subprocess.run(
        [*words, *argv], capture_output=True, text=True, timeout=240, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["rows"] == 72


# settings


def test_every_setting_is_a_flag() -> None:
    flags = "d.csv --out o --save-every 5 --lora.rank 4 --class-balance weights --freeze embeddings 0"
    flags += " --gradient-checkpointing"
    result = parse(flags.split())
    assert (result.data, str(result.out)) == ("d.csv", "o")
    assert (result.settings.save_every, result.settings.lora.rank, result.settings.class_balance) == (5, 4, "weights")
    assert (result.settings.freeze, result.settings.gradient_checkpointing) == (("embeddings", "0"), True)


# a terminal, and a hand on the keyboard


def test_ctrl_c_saves_and_says_how_to_go_on(reviews_csv: Path, tmp_path: Path) -> None:
    child = start("train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--epochs", "500")
    metrics = tmp_path / "run" / "metrics.jsonl"
    until = time.monotonic() + 100
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < until:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the state is saved in" in err
    assert "--resume" in err
    assert "Traceback" not in err
    assert (tmp_path / "run" / "state" / "state.json").exists()


# evaluate
