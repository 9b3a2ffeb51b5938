from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests import fork_server


def test_programs_run_as_python_runs_them(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(sys.argv[1:], __name__); sys.exit('wrong')")
    code = "import os, sys; print(sys.argv, os.getcwd(), os.environ['NAME'], sys.stdin.read()); sys.exit(3)"
    done = fork_server.run("-c", code, "a b", input="größe", cwd=tmp_path, env={"NAME": "x"})
    assert (done.returncode, done.stdout) == (3, f"['-c', 'a b'] {tmp_path} x größe\n")
    done = fork_server.run(tmp_path / "program.py", 1)
    assert (done.returncode, done.stdout, done.stderr) == (1, "['1'] __main__\n", "wrong\n")
    done = fork_server.run("-m", "regard.cli", "info", "nothing-like-it")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" in fork_server.run("-c", "import torch; 1 / 0").stderr


def test_a_process_can_be_asked_and_killed() -> None:
    with fork_server.start("-c", "import time; print('started', flush=True); time.sleep(60)") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.kill()
        assert process.wait(20) == process.poll() == -signal.SIGKILL
