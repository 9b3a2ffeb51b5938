"""Servers in processes of their own, for the stages of `serve.py`: start, memory, processor time, stop."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def environment(source: Path = SOURCE) -> dict[str, str]:
    path = f"{source.resolve()}:{os.environ.get('PYTHONPATH', '')}"
    return {**os.environ, "PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"}


class RunningServer:
    """A server and its address."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def pids(self) -> list[int]:
        """The server and its child processes, those of children too."""
        pids, at = [self.process.pid], 0
        while at < len(pids):
            for task in Path(f"/proc/{pids[at]}/task").glob("*/children"):
                pids += [int(pid) for pid in task.read_text().split()]
            at += 1
        return pids

    def memory(self) -> int:
        """Bytes of all processes."""
        total = 0
        for pid in self.pids():
            try:
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
            except OSError:
                continue
        return total

    def cpu_seconds(self) -> float:
        """Processor time of all processes so far."""
        return sum(cpu_seconds(pid) for pid in self.pids())

    def post(self, route: str, body: Any, *, timeout: float = 60) -> tuple[int, Any]:
        """The status and JSON of an answer; (0, None) without one."""
        request = urllib.request.Request(
            f"{self.url}{route}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, None
        except (OSError, http.client.HTTPException):
            return 0, None

    def get(self, route: str) -> int:
        try:
            with urllib.request.urlopen(f"{self.url}{route}", timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, http.client.HTTPException):
            return 0

    def wait(self, route: str, body: Any, *, seconds: float = 300) -> None:
        """Wait for an answer with status 200."""
        end = time.monotonic() + seconds
        while self.post(route, body)[0] != 200:
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"{self.process.args!r} did not start")
            time.sleep(0.1)

    def wait_ready(self, *, seconds: float = 120) -> float:
        """Seconds until /ready is true."""
        started = time.monotonic()
        while self.get("/ready") != 200:
            if time.monotonic() - started > seconds:
                raise SystemExit("the server is not ready")
            time.sleep(0.01)
        return time.monotonic() - started

    def worker(self) -> int:
        """The process of the first model."""
        return next(pid for pid in self.pids()[1:])

    def stop(self) -> None:
        """Stop the server, and kill those of its processes that stay."""
        pids = self.pids()
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(40)
        for pid in reversed(pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def cpu_seconds(pid: int) -> float:
    """Processor time of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def regard_server(*arguments: str, log: Path | None = None, source: Path = SOURCE) -> Iterator[RunningServer]:
    """`regard serve` on a free port; not yet ready."""
    command = [sys.executable, "-m", "regard.cli", "serve", *arguments, "--port", "0", "--json"]
    with (log or Path(os.devnull)).open("w") as stderr:
        options = {"stdout": subprocess.PIPE, "stderr": stderr, "text": True, "env": environment(source)}
        process = subprocess.Popen(command, **options)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(command)} ended; see {log}")
        server = RunningServer(process, json.loads(line)["url"])
        try:
            yield server
        finally:
            if process.poll() is None:
                server.stop()


@contextmanager
def other_server(command: list[str], port: int, log: Path) -> Iterator[RunningServer]:
    """A server of another library."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, text=True, env=environment())
        server = RunningServer(process, f"http://127.0.0.1:{port}")
        try:
            yield server
        finally:
            if process.poll() is None:
                server.stop()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
