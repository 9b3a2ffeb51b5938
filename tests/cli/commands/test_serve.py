"""regard serve: what stops it before it listens. tests/serve/http/test_run_server.py runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.helpers import Capture, run


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "no model was given"),
        (("a", "b/a"), 1, 'two models are called "a"'),
        (("a", "--host", "0.0.0.0"), 1, "--api-key-file"),
        (("a", "--api-key-file", "none.txt"), 1, "cannot be read"),
        (("a", "--look", "--api-key-file", "keys.txt"), 2, "contradict"),
        (("a", "--max-texts", "0"), 1, "--max-texts is 0"),
        (("a", "--port", "70000"), 1, "expected 0 to 65535"),
    ],
)
def test_wrong_use(
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.txt").write_text("a-long-key\n", encoding="utf-8")
    code, _, err = run(capsys, "serve", *arguments)
    assert code == status
    assert message in err


def test_a_folder_without_a_model(capsys: Capture, tmp_path: Path) -> None:
    code, _, err = run(capsys, "serve", tmp_path, "--port", 0)
    assert code == 1
    assert "config.json" in err
