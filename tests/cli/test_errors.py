"""Errors of all commands: what was typed, the exit status, and what stderr says. Nothing is printed or written."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from tests.cli.helpers import Capture, run

import regard
from regard import cli
from regard.text.learn import train_tokenizer_from_texts

TEXTS = ["the old man went to the market and the market was closed"] * 5

USAGE, ERROR = 2, 1  # exit statuses
ERRORS = [
    # which command, which flags
    ("", USAGE, "usage: regard COMMAND"),
    ("embd", USAGE, 'Did you mean "embed"?'),
    ("info", USAGE, "MODEL"),
    ("info tiny-bert --jsn", USAGE, "--json"),
    ("info bert-base-uncasd", ERROR, "bert-base-uncased"),
    # attention
    ("attention bert 'the old man' --layers 0", USAGE, "--layers 0 is the embeddings"),
    ("attention bert 'the old man' --layers 3", USAGE, "--layers 3 was given; this model has layers 1 to 2"),
    ("attention bert 'the old man' --heads 4", ERROR, "head 4 does not exist: there are 4"),
    ("attention bert 'the old man' --output w.npy", USAGE, "ends in .npz"),
    ("attention bert 'the old man' --plot w.jpeg", USAGE, ".png, .svg or .pdf"),
    ("attention bert 'the old man' --plot w.png --output w.npz", USAGE, "give one of them"),
    ("attention bert 'the old man' --output nowhere/w.npz", ERROR, "does not exist"),
    ("attention lstm 'a text'", ERROR, "a recurrent network has no attention"),
    # check
    ("check bad.csv --fix bad.csv", ERROR, "is the input file"),
    ("check bad.csv --html nowhere/a.html", ERROR, "does not exist. Make it first"),
    ("check bad.csv --html .", ERROR, "is a folder"),
    ("check bad.csv --task clasify", ERROR, 'Did you mean "classify"'),
    ("check bad.csv --columns text", ERROR, "is not ROLE=NAME"),
    ("check bad.csv --model bert-tny", ERROR, 'Did you mean "bert-tiny"'),
    ("check bad.csv --encoding cp12521", ERROR, 'Did you mean "cp1252"?'),
    ("check nowhere.csv", ERROR, "does not exist"),
    # compare, evaluate
    ("compare x.csv --models", USAGE, ""),
    ("compare x.csv --models tiny-bert --time soon", ERROR, "--time is 'soon', expected a duration"),
    ("evaluate minilm", USAGE, "DATA"),
    ("evaluate a b c.csv --output o.csv", USAGE, "Use --predictions"),
    ("evaluate - b c.csv", USAGE, "the data comes last"),
    ("evaluate a b -", USAGE, "stdin can be read once"),
    ("evaluate minilm a.csv --batch-tokens 0", ERROR, "--batch-tokens is 0, expected at least 1 token.\n"),
    # embed
    ("embed minilm", USAGE, "no text was given"),
    ("embed minilm a --pooling meen", USAGE, "mean"),
    ("embed minilm a --layer two", USAGE, "--layer"),
    ("embed minilm a --input b.txt", USAGE, "give one of them"),
    ("embed minilm a --columns text=b", USAGE, "without --input"),
    ("embed minilm a --output b.csv", USAGE, "must end in .npy"),
    ("embed minilm a --output b.npy --pooling none", USAGE, "must end in .npz"),
    ("embed tiny-bert 'a text'", ERROR, "no weights were published for it"),
    ("embed minilm ' '", ERROR, "empty"),
    ("embed minilm a --layer 99", ERROR, "layer 99"),
    ("embed minilm a --output nowhere/out.npy", ERROR, "does not exist"),
    ("embed minilm a --device tpu9", ERROR, "device"),
    ("embed minilm a --batch-tokens -5", ERROR, "--batch-tokens is -5, expected at least 1 token.\n"),
    ("embed nowhere-model -- --foo", ERROR, "is not a folder"),  # words after two dashes are no flags
    # explain
    ("explain classifier 'a text' --max-rows 3", USAGE, "--max-rows is for a file of texts"),
    ("explain classifier reviews.csv --target good", USAGE, "--target is for one text"),
    ("explain classifier reviews.csv --pair second", USAGE, "--pair is for one text"),
    ("explain classifier 'a text' --top 0", USAGE, "--top is 0"),
    ("explain classifier ''", USAGE, "TEXT is empty"),
    ("explain classifier missing.csv", USAGE, '"missing.csv" does not exist. If this is the text, add --literal.'),
    ("explain classifier 'a text' --method shap", ERROR, '--method "shap" is not known'),
    # export
    ("export minilm", USAGE, "--out"),
    ("export none --out out", ERROR, "none"),
    # fill
    ("fill tiny-bert", USAGE, "TEXT"),
    ("fill bert", USAGE, "no text was given. Give a TEXT with [MASK] in it, or --next"),
    ("fill bert --next one", USAGE, "--next takes two texts, the first and the second; 1 were given"),
    ("fill bert 'a [MASK]' --next one two", USAGE, "TEXT and --next were both given"),
    ("fill classifier 'a [MASK] film'", ERROR, "no head for masked words"),
    # generate
    ("generate gpt", USAGE, "no prompt was given"),
    ("generate gpt a --interactive", USAGE, "give one of them"),
    ("generate gpt a --topp 1", USAGE, "--top-p"),
    ("generate gpt a --beams 0", ERROR, "beams must be a whole number of at least 1"),
    ("generate gpt a --beams 2 --top-k 3", ERROR, "--beams 2 and --top-k 3 contradict"),
    ("generate gpt ''", ERROR, "prompt 0 is empty"),
    ("generate bert a", ERROR, "cannot generate"),
    # lesson
    ("lesson --html a.html", USAGE, ""),
    ("lesson 1 --notebook a.ipynb --html a.html", USAGE, ""),
    ("lesson 1 --notebook a.txt", USAGE, ""),
    ("lesson conting", ERROR, 'Did you mean "counting"'),
    ("lesson 1 --html missing/a.html", ERROR, "does not exist"),
    # look
    ("look classifier ' '", USAGE, "TEXT is empty"),
    ("look nothing 'a text'", ERROR, "nothing"),
    ("look classifier 'a film' --html page.txt", USAGE, "ends in .html"),
    ("look classifier 'a film' --data missing.csv", USAGE, "no such file"),
    # predict
    ("predict minilm", USAGE, "no text was given"),
    ("predict minilm a --input b.txt", USAGE, "give one of them"),
    ("predict minilm a --columns text=b", USAGE, "without --input"),
    ("predict minilm a --encoding cp1252", USAGE, "--encoding was given without --input"),
    ("predict minilm 'a text' --batch-tokens 0", ERROR, "--batch-tokens is 0, expected at least 1 token.\n"),
    ("predict minilm 'a text'", ERROR, "this is a network without a task"),
    ("predict classifier 'a text' ./page.txt", USAGE, '"./page.txt" is a file'),
    ("predict classifier 'a text' --context page.txt", USAGE, "--context is for models that answer questions"),
    ("predict reader where? page.txt", USAGE, '"page.txt" is a file'),
    ("predict reader who? --context nowhere.txt", ERROR, "nowhere.txt: does not exist"),
    ("predict reader who? --context empty.txt", ERROR, "empty.txt: is empty"),
    ("predict reader who? --context latin.txt", ERROR, "is not UTF-8"),
    ("predict reader --context - --input -", USAGE, "cannot both be stdin"),
    ("predict reader who?", USAGE, "--context FILE"),
    ("predict reader --resume who? where", USAGE, "--resume was given without --output"),
    ("predict reader who? where --output a.csv.gz", ERROR, "compressed files are not written"),
    ("predict reader who? where --output a.xlsx", ERROR, "Use a.csv"),
    ("predict reader --input q.csv --columns question=question,context=context --context page.txt", ERROR, "too"),
    # pretrain
    ("pretrain page.txt --out run --start minilm --preset tiny-bert", USAGE, "--start and --preset were given"),
    ("pretrain page.txt --out run --start minilm --tokenizer x", USAGE, "--tokenizer was given without --preset"),
    ("pretrain page.txt --out run --preset tiny-bert --lr -1", ERROR, "lr is -1"),
    ("pretrain page.txt --out run --preset tiny-bert --resume", ERROR, "holds no training that could be resumed"),
    ("pretrain page.txt --out run --preset tiny-bert --prefix 'x: '", ERROR, "--prefix is for regard train"),
    (
        "pretrain page.txt --out run --preset tiny-bert --class-balance weights",
        ERROR,
        "--class-balance is for regard train",
    ),
    # sample
    ("sample --out x", USAGE, ""),
    ("sample corpus --out no/mine.txt", ERROR, "does not exist"),
    ("sample corpsu", ERROR, 'Did you mean "corpus"?'),
    ("sample messages --out page.txt", ERROR, "holds something else. Use --out FILE, or --overwrite"),
    # search
    ("search classifier page.txt", USAGE, "no query was given. Write it after the file"),
    ("search classifier page.txt a --cache x --no-cache", USAGE, "--cache and --no-cache were given"),
    ("search minilm a.txt 'a query' --batch-tokens 0", ERROR, "--batch-tokens is 0, expected at least 1 token.\n"),
    # serve
    ("serve", USAGE, "no model was given"),
    ("serve a b/a", ERROR, 'two models are called "a"'),
    ("serve a --host 0.0.0.0", ERROR, "--api-key-file"),
    ("serve a --api-key-file none.txt", ERROR, "cannot be read"),
    ("serve a --look --api-key-file keys.txt", USAGE, "contradict"),
    ("serve a --max-texts 0", ERROR, "--max-texts is 0"),
    ("serve a --port 70000", ERROR, "expected 0 to 65535"),
    ("serve folder --port 0", ERROR, "config.json"),
    # tokenizer
    ("tokenizer --out out", USAGE, ""),
    ("tokenizer page.txt --cased --lowercase --out out", USAGE, "give one of them"),
    ("tokenizer page.txt --kind wordpeice --out out", USAGE, ""),
    # train
    ("train data.csv", USAGE, "--out"),
    ("train data.csv --out a --epoch 3", USAGE, "--epochs"),
    ("train data.csv --out a --start minilm --preset tiny-bert", USAGE, "give one of them"),
    ("train data.csv --out a --tokenizer words", USAGE, "without --preset"),
    ("train data.csv --out a --lr fast", USAGE, "--lr"),
    ("train data.csv --out a --config", USAGE, "without a file"),
    ("train data.csv --out a --config no.toml", ERROR, "no.toml: cannot be read: No such file"),
    (
        "train reviews.csv --out classifier",
        ERROR,
        "Use --resume to continue its training, or --overwrite to start over",
    ),
    ("train reviews.csv --preset tiny-bert --out a --folds 2 --dev valid.csv", USAGE, "--dev was given with --folds"),
    ("train a.csv --out a --epochs two", USAGE, '--epochs: "two" was given, expected a number.'),
    ("train a.csv --out a --steps 1.5", USAGE, '--steps: "1.5" was given, expected a whole number.'),
    ("train a.csv --out a --seed x", USAGE, '--seed: "x" was given, expected a whole number.'),
    ("train a.csv --out a --model.norm-first x", USAGE, '--model.norm-first: "x" was given, expected yes or no.'),
    ("train a.csv --out a --schedule None", USAGE, "argument '--schedule'. Expected one of ('linear',"),
    # translate
    ("translate tiny-gru", USAGE, "no text was given"),
    ("translate tiny-gru a --input b", USAGE, "TEXT and --input were both given"),
    ("translate classifier 'a text' ./page.txt", USAGE, '"./page.txt" is a file'),
    ("translate minilm 'a text'", ERROR, "only encoder-decoders translate"),
    ("translate tiny-bert 'a text'", ERROR, "no weights were published for it"),
    ("translate minilm 'a text' --batch-tokens 0", ERROR, "--batch-tokens is 0, expected at least 1 token.\n"),
    # vectors
    ("vectors", USAGE, "one of them"),
    ("vectors a.txt --load v.bin", USAGE, "one of them"),
    ("vectors a.txt", USAGE, "no output was requested"),
    ("vectors --load v.bin", USAGE, "nothing to do"),
    ("vectors a.txt --out v.npy", ERROR, "must end in .bin"),
    ("vectors none.txt --out v.bin", ERROR, "cannot be read"),
    ("vectors --load none.bin --nearest a", ERROR, "cannot be read"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, trained: Path, reviews_csv: Path) -> Path:
    """A folder with models and with files that commands refuse."""
    folder = tmp_path_factory.mktemp("errors")
    words = train_tokenizer_from_texts(TEXTS, kind="wordpiece", size=50)
    letters = train_tokenizer_from_texts(TEXTS, kind="char")
    for name, preset, tokenizer, heads in (
        ("bert", "tiny-bert", words, {"masked": 0, "next": 2}),
        ("reader", "tiny-bert", words, {"span": 2}),
        ("gpt", "tiny-gpt2", letters, None),
        ("lstm", "tiny-lstm-language", letters, None),
    ):
        regard.create(preset, tokenizer=tokenizer, heads=heads, device="cpu").save(folder / name)
    (folder / "classifier").symlink_to(trained)
    (folder / "reviews.csv").symlink_to(reviews_csv)
    (folder / "folder").mkdir()
    files = {
        "bad.csv": "text,label\nthe sea was calm,a\n,b\n",
        "page.txt": "Ida Wells was born in 1862.\n",
        "empty.txt": " \n",
        "q.csv": "question,context\na,b\n",
        "keys.txt": "a-long-key\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "latin.txt").write_bytes("née".encode("latin-1"))
    return folder


@pytest.mark.parametrize(("line", "status", "message"), ERRORS, ids=[line for line, _, _ in ERRORS])
def test_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, line: str, status: int, message: str
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    actual, out, err = run(capsys, *shlex.split(line))
    assert (actual, out) == (status, "")
    assert message in err
    assert "Traceback" not in err
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"epoch = 3", 'there is no setting "epoch". Did you mean "epochs"?'),
        (b'prest = "tiny-bert"', 'there is no setting "prest". Did you mean "preset"?'),
        (b'epochs = "three"', "epochs is 'three', expected a number."),
        (b"out = 3", "out is 3, expected a text in quotes."),
        (b'json = "yes"', "json is 'yes', expected true or false."),
        (b"epochs = ", "this is not TOML"),
        (b"lora = {rnk = 2}", "lora is {'rnk': 2}, expected its rank, or some of rank, alpha, dropout."),
        (b"a = " + b"[" * 100_000, "cannot be read: its content is nested too deeply"),
        (b"\xff\xfe", "this is not UTF-8"),
        (b"epochs = 1\nepochs = 2\n" + b"#" * (2 << 20), "expected at most 1,048,576"),
        (None, "is not a regular file"),
    ],
)
def test_file_of_settings_that_cannot_be_used(
    capsys: Capture, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "run.toml"
    os.mkfifo(path) if content is None else path.write_bytes(content)
    status, _, err = run(capsys, "train", "d.csv", "--out", tmp_path / "o", "--config", path)
    assert (status, f"{path}: " in err, message in err) == (1, True, True)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_flag_that_is_gone_or_misspelled_is_an_unknown_flag(capsys: Capture, command: str) -> None:
    status, out, err = run(capsys, command, "--jsno")
    assert (status, out) == (2, "")
    assert f"--jsno is not a flag of regard {command}." in err
