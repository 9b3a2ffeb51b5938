"""The script `regard` ends without freeing its objects, but does all else that Python does when it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = "from regard.cli.__main__ import run; run()"


def ended(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


def test_output_and_status() -> None:
    done = ended(SCRIPT, "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("regard ")
    wrong = ended(SCRIPT, "lern")
    assert wrong.returncode == 2
    assert '"lern" is not a command' in wrong.stderr


def test_threads_end_and_functions_are_called(tmp_path: Path) -> None:
    code = f"""
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from regard.cli.__main__ import end_process

executor = ThreadPoolExecutor(1)
executor.submit(lambda: time.sleep(0.2) or Path({str(tmp_path / "executor")!r}).touch())
threading.Thread(target=lambda: time.sleep(0.3) or Path({str(tmp_path / "thread")!r}).touch()).start()
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
atexit.register(lambda: Path({str(tmp_path / "registered")!r}).touch())
sys.stdout.write("not yet flushed")
end_process(3)
"""
    done = ended(code)
    assert (done.returncode, done.stdout, done.stderr) == (3, "not yet flushed", "")
    assert {path.name for path in tmp_path.iterdir()} == {"executor", "thread", "registered"}


def test_closed_streams_are_no_error() -> None:
    done = ended("import sys; from regard.cli.__main__ import end_process; sys.stdout.close(); end_process(1)")
    assert (done.returncode, done.stderr) == (1, "")


def test_missing_streams_are_no_error() -> None:
    """As after `regard ... >&- 2>&-`."""
    done = ended("import sys; from regard.cli.__main__ import end_process; sys.stdout = None; end_process(2)")
    assert (done.returncode, done.stderr) == (2, "")
