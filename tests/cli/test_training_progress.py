"""The progress of a training on stderr."""

from __future__ import annotations

import os
import pty
import threading
from pathlib import Path

from tests.cli.helpers import QUICK, start


def test_a_person_sees_a_bar(reviews_csv: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    child = start("train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--log-every", "1", err=theirs)
    os.close(theirs)
    recorded: list[bytes] = []

    def look() -> None:
        try:
            while some := os.read(ours, 4096):
                recorded.append(some)
        except OSError:  # the other side is closed
            pass

    thread = threading.Thread(target=look)
    thread.start()
    out, _ = child.communicate(timeout=100)
    thread.join(10)
    os.close(ours)
    words = b"".join(recorded).decode("utf-8", "replace")
    assert child.returncode == 0, words
    assert "tokens/s" in words
    assert "left" in words
    assert "tokens/s" not in out
