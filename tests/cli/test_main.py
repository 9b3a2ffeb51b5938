"""The command line: answers on stdout, everything else on stderr, and an exit status that tells."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import regard
from regard import cli
from regard.cli.arguments import read_texts
from regard.cli.output import progress_bar
from regard.errors import DataError, InputError
from regard.progress import Progress

TEXTS = ["a cat sat on the mat", "the stock market fell", "a dog lay on the rug"]


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(argv)
    said = capsys.readouterr()
    return status, said.out, said.err


def child(*argv: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regard.cli", *argv],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **settings,
    )


# help and wrong use


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    status, out, err = run(capsys, command, "--help")
    assert (status, err) == (0, "")
    assert f"  regard {command}" in out.split("Examples:")[1]
    assert "--json" in out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for command in cli.COMMANDS:
        assert f"\n  {command} " in out
    assert run(capsys, "--version") == (0, f"regard {regard.__version__}\n", "")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "usage: regard COMMAND"),
        (["embd"], 'Did you mean "embed"?'),
        (["info"], "MODEL"),
        (["info", "tiny-bert", "--jsn"], "--json"),
        (["embed", "minilm", "a", "--pooling", "meen"], "mean"),
        (["embed", "minilm", "a", "--layer", "two"], "--layer"),
        (["embed", "minilm"], "no text was given"),
        (["embed", "minilm", "a", "--input", "b.txt"], "give one of them"),
        (["embed", "minilm", "a", "--columns", "text=b"], "without --input"),
        (["embed", "minilm", "a", "--output", "b.csv"], "must end in .npy"),
        (["embed", "minilm", "a", "--output", "b.npy", "--pooling", "none"], "must end in .npz"),
    ],
)
def test_wrong_use_is_2(capsys: pytest.CaptureFixture[str], argv: list[str], says: str) -> None:
    status, out, err = run(capsys, *argv)
    assert (status, out) == (2, "")
    assert says in err


# info


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "info", "bert-base-uncased", "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert {"family", "task", "parameters", "layers", "width", "heads", "vocabulary", "bytes"} <= set(found)
    assert found["parameters"] == 109_482_240
    assert (found["family"], found["task"], found["layers"], found["width"]) == ("bert", None, 12, 768)


def test_info_as_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "info", "minilm")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert status == 0
    assert (rows["family"], rows["parameters"], rows["tokenizer"].lower()) == ("bert", "22,713,216", "wordpiece")


def test_an_unknown_model_is_1_and_offers_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "info", "bert-base-uncasd")
    assert (status, out) == (1, "")
    assert err.startswith("regard: ")
    assert "bert-base-uncased" in err
    assert "Traceback" not in err


# embed


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    found = regard.load("minilm").embed(TEXTS)
    assert isinstance(found, np.ndarray)
    return found


def test_embed_prints_one_object_a_line(capsys: pytest.CaptureFixture[str], vectors: np.ndarray) -> None:
    status, out, err = run(capsys, "embed", "minilm", *TEXTS, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert [row["text"] for row in rows] == TEXTS
    np.testing.assert_allclose([row["vector"] for row in rows], vectors, atol=1e-6)


def test_embed_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "embed", "minilm", *TEXTS)
    assert status == 0
    assert [line.split("  ")[0] for line in out.splitlines()] == TEXTS
    assert "384 numbers" in out


def test_embed_writes_an_array(capsys: pytest.CaptureFixture[str], tmp_path: Path, vectors: np.ndarray) -> None:
    source, target = tmp_path / "texts.txt", tmp_path / "out.npy"
    source.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(TEXTS).encode() + b"\r\n")
    status, out, _ = run(capsys, "embed", "minilm", "--input", str(source), "--output", str(target), "--json")
    assert status == 0
    assert json.loads(out) == {"texts": 3, "width": 384, "output": str(target)}
    np.testing.assert_allclose(np.load(target), vectors, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npy", "texts.txt"]


def test_embed_writes_one_array_a_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, target = tmp_path / "texts.jsonl", tmp_path / "out.npz"
    source.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS))
    status, out, _ = run(
        capsys, "embed", "minilm", "--input", str(source), "--output", str(target), "--pooling", "none"
    )
    assert status == 0
    assert str(target) in out
    with np.load(target) as found:
        assert [found[name].shape for name in found.files] == [(8, 384), (6, 384), (8, 384)]


def test_embed_takes_layer_pool_and_length(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("embed", "minilm", TEXTS[0], "--layer", "2", "--pooling", "first", "--normalize", "--json")
    status, out, _ = run(capsys, *argv)
    expected = regard.load("minilm").embed(TEXTS[:1], layer=2, pooling="first", normalize=True)
    assert status == 0
    np.testing.assert_allclose(json.loads(out)["vector"], expected[0], atol=1e-6)
    assert np.linalg.norm(expected[0]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("columns", "content", "texts"),
    [
        (None, "één\ntwee", ["één", "twee"]),
        (None, "text,label\na,b\n", ["text,label", "a,b"]),  # plain text unless a column is named
        ("text=said", "said,label\néén,b\n", ["één"]),
        ("text=said", '{"said": "one"}\n{"said": "two"}\n', ["one", "two"]),
    ],
)
def test_texts_from_stdin(monkeypatch: pytest.MonkeyPatch, columns: str | None, content: str, texts: list[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert read_texts("-", columns) == texts


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "first, second\nthird\tfourth\n"),
        ("a.log", "first, second\nthird\tfourth\n"),
        ("a", "first, second\r\nthird\tfourth"),
        ("a.csv", 'id,text\n1,"first, second"\n2,third\tfourth\n'),
        ("a.jsonl", '{"id": 7, "text": "first, second"}\n\n{"text": "third\\tfourth"}\n'),
        ("a.json", '[{"text": "first, second"}, {"text": "third\\tfourth"}]'),
    ],
)
def test_texts_from_any_format(tmp_path: Path, name: str, content: str) -> None:
    path, packed = tmp_path / name, tmp_path / f"{name}.gz"
    path.write_bytes(content.encode())
    packed.write_bytes(gzip.compress(content.encode()))
    assert read_texts(str(path)) == read_texts(str(packed)) == ["first, second", "third\tfourth"]


def test_texts_from_parquet_and_a_named_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"said": ["one", "two"], "n": [1, 2]}), tmp_path / "a.parquet")
    assert read_texts(str(tmp_path / "a.parquet"), "text=said") == ["one", "two"]
    with pytest.raises(DataError, match="--columns text=NAME"):
        read_texts(str(tmp_path / "a.parquet"))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(InputError, match="is plain text and has none"):
        read_texts(str(tmp_path / "a.txt"), "text=said")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"", "is empty; expected at least one row"),
        ("a.txt", b"\n \n", "contains only whitespace"),
        ("a.txt", b"one\n\nthree\n", "line 2: holds an empty text. Remove the line, or give it words."),
        ("a.txt", b"one\n\xff\xfe\n", "line 2: byte 1 .* is not UTF-8"),
        ("a.csv", b"text\nx\n' '\n\"\"\n", "line 4: holds an empty text"),
        ("a.csv", b"first,second\nx,y\n", "do not match the task text"),
        ("a.jsonl", b'{"text": "x"}\n{"txt": "y"}\n', r'line 2: there is no "text" \(there is txt\)'),
        ("a.jsonl", b'{"text": "x"}\n[1]\n', "line 2: is a list"),
        ("a.jsonl", b'{"text": "x"}\n{"text": "y"\n', "line 2.*is not JSON"),
        ("a.jsonl", b'\n{"text": " "}\n', "line 2: holds an empty text"),
        ("none.txt", None, "does not exist"),
    ],
)
def test_files_that_cannot_be_read_say_where(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_texts(str(tmp_path / name))
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["embed", "tiny-bert", "a text"], "no weights were published for it"),
        (["embed", "minilm", " "], "empty"),
        (["embed", "minilm", "a", "--layer", "99"], "layer 99"),
        (["embed", "minilm", "a", "--output", "nowhere/out.npy"], "does not exist"),
        (["embed", "minilm", "a", "--device", "tpu9"], "device"),
        (["embed", "minilm", "a", "--batch-tokens", "0"], "at least 1 token"),
    ],
)
def test_what_a_user_can_mend_is_1(capsys: pytest.CaptureFixture[str], argv: list[str], says: str) -> None:
    status, out, err = run(capsys, *argv)
    assert (status, out) == (1, "")
    assert err.startswith("regard: ")
    assert says in err


# doctor


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "doctor", "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert found["regard"] == regard.__version__
    assert found["kernels"]["cpu"] == "grouped"
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    assert out.splitlines()[0].startswith("regard ")
    assert "attention on cpu" in out


def test_doctor_on_a_machine_with_a_gpu_and_without_extras(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from regard import device

    gpu = device.Gpu("Some GPU", 80 * 10**9, "9.0", bf16=True, flash=True)
    kernels = {"cpu": "grouped", "cuda, bf16 or fp16": "varlen"}
    extras: dict[str, str | None] = {"serve": 'pip install "regard[serve]"'}
    other = replace(
        device.device_report(), gpus=(gpu,), kernels=kernels, extras=extras, compiler=None, memory=None, offline=True
    )
    monkeypatch.setattr(device, "device_report", lambda: other)
    _, out, _ = run(capsys, "doctor")
    for part in ("Some GPU, 80.0 GB", "varlen", 'pip install "regard[serve]"', "no C++ compiler", "HF_HUB_OFFLINE"):
        assert part in out


# the frame


def test_warnings_go_to_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(_: object) -> None:
        warnings.simplefilter("default")
        warnings.warn("something to know", stacklevel=1)

    monkeypatch.setitem(cli.COMMANDS, "doctor", cli.COMMANDS["doctor"]._replace(run=warn))
    assert run(capsys, "doctor") == (0, "", "regard: warning: something to know\n")


def test_ctrl_c_is_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "doctor", cli.COMMANDS["doctor"]._replace(run=stop))
    assert run(capsys, "doctor") == (130, "", "regard: stopped\n")


def test_progress_is_shown_to_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_bar() as progress:
        assert progress is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar(after=60) as progress:
        assert progress is not None
        progress(Progress("texts", 1, 2))
    assert capsys.readouterr().err == ""
    with progress_bar(after=0) as progress:
        assert progress is not None
        progress(Progress("texts", 1, 2))
    assert "1/2" in capsys.readouterr().err


@pytest.mark.minilm
def test_a_whole_run_as_a_process(tmp_path: Path) -> None:
    done = child("embed", "minilm", "--input", "-", "--json", input="one\ntwo\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == ["one", "two"]
    failed = child("info", "nothing-like-it", cwd=tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "Traceback" not in failed.stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "regard.cli", "embed", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_importing_costs_no_torch() -> None:
    heavy = "torch", "numpy", "rich", "tokenizers", "transformers", "pyarrow", "safetensors"
    code = f"import sys, regard, regard.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_answers_in_under_half_a_second() -> None:
    """Processor time over that of a bare interpreter, so that a busy machine does not count; the median of five."""

    def cost(*argv: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *argv], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare = statistics.median(cost("-c", "pass") for _ in range(5))
    helped = statistics.median(cost("-m", "regard.cli", "--help") for _ in range(5))
    assert helped - bare < 0.45


def test_public_names() -> None:
    assert set(regard.__all__) <= set(dir(regard))
    assert all(getattr(regard, name) is not None for name in regard.__all__)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        regard.laod  # noqa: B018  (the lookup is the test)


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert version("regard") == regard.__version__


def test_nothing_is_left_on_a_full_disk(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "save", full)
    status, _, err = run(capsys, "embed", "minilm", "a", "--output", str(tmp_path / "out.npy"))
    assert status == 1
    assert "No space left" in err
    assert list(tmp_path.iterdir()) == []
