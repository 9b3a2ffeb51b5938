"""The command line: answers on stdout, everything else on stderr, and an exit status that tells."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.cli.helpers import run

import regard
from regard import cli
from regard.cli.output import progress_bar
from regard.progress import Progress


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


def test_help_after_arguments_shows_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = run(capsys, "predict", "runs/model", "--help")
    assert (status, shown) == run(capsys, "predict", "--help")[:2]
    assert "MODEL" in shown.splitlines()[0]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for command in cli.COMMANDS:
        assert f"\n  {command} " in out
    assert run(capsys, "--version") == (0, f"regard {regard.__version__}\n", "")


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


def test_what_is_kept_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: object) -> None:
        error = next(errors)
        error.add_note("16 rows are kept: add --resume.")
        raise error

    errors = iter([KeyboardInterrupt(), OSError(28, "No space left"), MemoryError()])
    monkeypatch.setitem(cli.COMMANDS, "doctor", cli.COMMANDS["doctor"]._replace(run=stop))
    said = [run(capsys, "doctor")[2] for _ in range(3)]
    assert said[:2] == [f"regard: {one}. 16 rows are kept: add --resume.\n" for one in ("stopped", "No space left")]
    assert said[2].endswith("at once. 16 rows are kept: add --resume.\n")


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


def test_help_imports_no_parser_and_no_command() -> None:
    code = "import sys, regard.cli; regard.cli.main(['--help']); print([*sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = ast.literal_eval(done.stderr)
    assert [name for name in modules if name == "tyro" or name.startswith("regard.cli.commands.")] == []


def test_public_names() -> None:
    assert set(regard.__all__) <= set(dir(regard))
    assert all(getattr(regard, name) is not None for name in regard.__all__)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        regard.laod  # noqa: B018  (the lookup is the test)


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert version("regard") == regard.__version__
