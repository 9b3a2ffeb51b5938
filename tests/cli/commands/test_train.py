"""`regard train` and `regard evaluate`: flags, files of settings, old names, what is said and where."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from regard import cli
from regard.cli.commands.train import parse
from regard.cli.trainer_names import translate_flags

QUICK = ("--preset", "tiny-bert", "--epochs", "1", "--batch-size", "8", "--lr", "1e-3", "--device", "cpu")
Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *argv: object) -> tuple[int, str, str]:
    status = cli.main([str(one) for one in argv])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_train_says_what_it_does_and_scores(capsys: Capture, reviews_csv: Path, tmp_path: Path) -> None:
    status, out, err = run(capsys, "train", reviews_csv, "--out", tmp_path / "run", *QUICK)
    assert status == 0
    assert "data: csv for classify (text=text, label=label)" in err
    assert "rows: 72 training rows, 8 validation rows (10 % split)" in err
    assert "epoch 1.0, step 10 of 10: accuracy " in err
    assert out.splitlines()[1].startswith("accuracy  ")
    assert f"regard predict {tmp_path / 'run'}" in out


def test_train_as_json(capsys: Capture, reviews_csv: Path, tmp_path: Path) -> None:
    status, out, _ = run(capsys, "train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--json")
    found = json.loads(out)
    assert status == 0
    assert set(found) == {"task", "rows", "scores", "seconds", "folder"}
    assert set(found["scores"]["accuracy"]) == {"value", "low", "high"}
    assert (found["task"], found["rows"], found["folder"]) == ("classify", 72, str(tmp_path / "run"))


def test_of_several_ranks_the_first_alone_gives_the_result(reviews_csv: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "regard.cli"]
    given = ["train", str(reviews_csv), "--out", str(tmp_path / "run"), *QUICK, "--json"]
    done = subprocess.run(
        [*words, *given], capture_output=True, text=True, timeout=240, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["rows"] == 72


def test_an_occupied_folder_is_1(capsys: Capture, trained: Path, reviews_csv: Path) -> None:
    status, out, err = run(capsys, "train", reviews_csv, "--out", trained, *QUICK)
    assert (status, out) == (1, "")
    assert "--resume to go on, --overwrite to begin again" in err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["train", "data.csv"], "--out"),
        (["train", "data.csv", "--out", "a", "--epoch", "3"], "--epochs"),
        (["train", "data.csv", "--out", "a", "--start", "minilm", "--preset", "tiny-bert"], "give one of them"),
        (["train", "data.csv", "--out", "a", "--tokenizer", "words"], "without --preset"),
        (["train", "data.csv", "--out", "a", "--lr", "fast"], "--lr"),
        (["train", "data.csv", "--out", "a", "--config"], "without a file"),
        (["evaluate", "minilm"], "DATA"),
        (["predict", "minilm"], "no text was given"),
        (["predict", "minilm", "a", "--input", "b.txt"], "give one of them"),
        (["predict", "minilm", "a", "--columns", "text=b"], "without --input"),
        (["fill", "tiny-bert"], "TEXT"),
    ],
)
def test_wrong_use_is_2(capsys: Capture, argv: list[str], says: str) -> None:
    status, out, err = run(capsys, *argv)
    assert (status, out) == (2, "")
    assert says in err


# settings


def test_every_setting_is_a_flag() -> None:
    flags = "d.csv --out o --save-every 5 --lora.rank 4 --class-balance weights --freeze embeddings 0"
    flags += " --gradient-checkpointing"
    found = parse(flags.split())
    assert (found.data, str(found.out)) == ("d.csv", "o")
    assert (found.settings.save_every, found.settings.lora.rank, found.settings.class_balance) == (5, 4, "weights")
    assert (found.settings.freeze, found.settings.gradient_checkpointing) == (("embeddings", "0"), True)


def test_a_file_of_settings_stands_behind_the_flags(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'data = "reviews.csv"\npreset = "tiny-bert"\nepochs = 3\nlr = 1e-4\nfreeze = ["embeddings"]\n'
        '[lora]\nrank = 2\n[columns]\ntext = "opinion"\nlabel = "stars"\n'
    )
    found = parse(["--config", str(file), "--out", "o", "--epochs", "1", "--lora.alpha", "8"])
    assert (found.data, found.preset, found.columns) == ("reviews.csv", "tiny-bert", "text=opinion,label=stars")
    assert (found.settings.epochs, found.settings.lr, found.settings.freeze) == (1, 1e-4, ("embeddings",))
    assert (found.settings.lora.rank, found.settings.lora.alpha) == (2, 8)
    assert parse([f"--config={file}", "other.csv", "--out", "o"]).data == "other.csv"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("epoch = 3", 'run.toml: there is no setting "epoch". Did you mean "epochs"?'),
        ('prest = "tiny-bert"', 'run.toml: there is no setting "prest". Did you mean "preset"?'),
        ('epochs = "three"', "run.toml: epochs is 'three', expected a number."),
        ("out = 3", "run.toml: out is 3, expected a text in quotes."),
        ('json = "yes"', "run.toml: json is 'yes', expected true or false."),
        ("epochs = ", "run.toml: this is not TOML"),
        ("lora = {rnk = 2}", "run.toml: lora is {'rnk': 2}, expected its rank, or some of rank, alpha, dropout."),
    ],
)
def test_a_file_that_will_not_do(capsys: Capture, tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "run.toml").write_text(content)
    status, _, err = run(capsys, "train", "d.csv", "--out", tmp_path / "o", "--config", tmp_path / "run.toml")
    assert status == 1
    assert says in err


def test_a_file_of_settings_that_is_not_there(capsys: Capture, tmp_path: Path) -> None:
    status, _, err = run(capsys, "train", "d.csv", "--out", tmp_path / "o", "--config", tmp_path / "no.toml")
    assert status == 1
    assert "no.toml: cannot be read: No such file" in err


def test_flags_of_the_trainer_are_understood(capsys: Capture) -> None:
    old = (
        "--train_file d.csv --output_dir o --model_name_or_path minilm --learning_rate=2e-5 --num-train-epochs 3 "
        "--max_seq_length 128 --evaluation_strategy epoch --fp16 --load_best_model_at_end True --torch_compile False "
        "--gradient_checkpointing --overwrite_output_dir --seed 7 --lr_scheduler_type inverse_sqrt --push_to_hub False "
        "--optim adamw_torch"
    )
    given = translate_flags(old.split())
    assert " ".join(given) == (
        "d.csv --out o --start minilm --lr 2e-5 --epochs 3 --window 128 --compile no --gradient-checkpointing "
        "--overwrite --seed 7 --schedule sqrt"
    )
    err = capsys.readouterr().err
    assert "regard: --learning_rate is called --lr here." in err
    assert "--evaluation_strategy is not needed: validation runs once per epoch; --eval-every STEPS runs" in err
    found = parse(given)
    assert (found.settings.lr, found.settings.window, found.overwrite) == (2e-5, 128, True)


# a terminal, and a hand on the keyboard


def start(*argv: object, err: int = subprocess.PIPE) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "regard.cli", *(str(one) for one in argv)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=err, text=True)


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


def test_a_person_sees_a_bar(reviews_csv: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    child = start("train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--log-every", "1", err=theirs)
    os.close(theirs)
    seen: list[bytes] = []

    def look() -> None:
        try:
            while some := os.read(ours, 4096):
                seen.append(some)
        except OSError:  # the other side is closed
            pass

    thread = threading.Thread(target=look)
    thread.start()
    out, _ = child.communicate(timeout=100)
    thread.join(10)
    os.close(ours)
    words = b"".join(seen).decode("utf-8", "replace")
    assert child.returncode == 0, words
    assert "tokens/s" in words
    assert "left" in words
    assert "tokens/s" not in out


# evaluate


def test_evaluate_as_table_and_json(
    capsys: Capture,
    trained: Path,
    tmp_path: Path,
    write_rows: Callable[..., Path],
    reviews: Callable[..., list[object]],
) -> None:
    data = write_rows(tmp_path / "test.csv", reviews(30, seed=5), header=("opinion", "stars"))
    told = ("--columns", "text=opinion,label=stars", "--device", "cpu")
    status, out, err = run(capsys, "evaluate", trained, data, *told, "--answers", tmp_path / "a.jsonl")
    assert status == 0
    assert "accuracy" in out
    assert "30 rows" in out
    assert "data: csv for classify (text=opinion, label=stars)" in err
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 30
    status, out, _ = run(capsys, "evaluate", trained, data, *told, "--json")
    found = json.loads(out)
    assert set(found) == {"task", "rows", "scores", "seconds", "folder", "classes", "averages", "confusion"}
    assert found["folder"] == str(trained)


def test_a_model_of_likeness_takes_texts_two_by_two(capsys: Capture, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2\n" + "".join(f"one {n},two {n % 3}\n" for n in range(20)))
    argv = ("train", pairs, "--task", "embed", "--out", tmp_path / "run", *QUICK)
    status, out, _ = run(capsys, *argv)
    assert status == 0
    assert f'regard embed {tmp_path / "run"} "a text" "another"' in out
    said = [run(capsys, "predict", tmp_path / "run", *given, "--json")[1] for given in ((*"ab",), ("--input", pairs))]
    assert [len(lines.splitlines()) for lines in said] == [1, 20]
    assert set(json.loads(said[0])) == {"similarity", "found", "truncated", "windows"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a = " + b"[" * 100_000, "cannot be read: its content is nested too deeply"),
        (b"\xff\xfe", "this is not UTF-8"),
        (b"epochs = 1\nepochs = 2\n" + b"#" * (2 << 20), "expected at most 1,048,576"),
        (None, "is not a regular file"),
    ],
)
def test_a_settings_file_that_is_none(capsys: Capture, tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "run.toml"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    status, _, err = run(capsys, "train", "a.csv", "--config", path)
    assert status == 1
    assert says in err
    assert str(path) in err
