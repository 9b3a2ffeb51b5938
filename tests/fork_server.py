"""A process that has imported torch and regard, and starts others by forking itself: imports take them no time.

    process = start("-m", "regard.cli", "serve", folder)      as subprocess.Popen([sys.executable, ...])
    done = run("-c", code, "an argument", cwd=folder)          as subprocess.run([sys.executable, ...])

The process is started once in a run of pytest, when it is first needed. It never computes, since threads of torch do
not survive a fork; what it starts has one thread. Tests of the start itself, of what is imported, and of memory need a
process of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

PRELOAD = (
    "regard.cli",
    "regard.cli.commands.check",
    "regard.cli.commands.predict",
    "regard.cli.commands.pretrain",
    "regard.cli.commands.train",
    "regard.predict.batch.files",
    "regard.training.pretrain",
    "regard.training.train",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "torch._dynamo",  # imported by torch for steps on several ranks
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MESSAGE_BYTES = 1 << 18
NUMBER = struct.Struct("=q")  # a process id, later its exit status
PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL


class ForkedProcess:
    """What `subprocess.Popen` is for a process of one's own, with text streams in UTF-8."""

    def __init__(self, status: int, stdin: IO[str] | None, stdout: IO[str] | None, stderr: IO[str] | None) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._status = status
        self.pid = NUMBER.unpack(os.read(status, NUMBER.size))[0]

    def __enter__(self) -> ForkedProcess:
        return self

    def __exit__(self, *error: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """The exit status; None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = NUMBER.unpack(os.read(self._status, NUMBER.size))[0]
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def finish(self, input: str | None = None, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Send the input, read stdout and stderr to their ends, and wait for the exit status."""
        out, err = self.communicate(input, timeout)
        return subprocess.CompletedProcess([], self.wait(timeout), out, err)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Send the input, and read stdout and stderr to their ends."""
        texts = ["", ""]

        def read(index: int, stream: IO[str]) -> None:
            texts[index] = stream.read()

        streams = [(index, stream) for index, stream in enumerate((self.stdout, self.stderr)) if stream is not None]
        threads = [threading.Thread(target=read, args=pair, daemon=True) for pair in streams]
        for thread in threads:
            thread.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(input or "")
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
        for _, stream in streams:
            stream.close()
        return texts[0], texts[1]


def start(
    *arguments: object,
    stdin: int | None = DEVNULL,
    stdout: int | None = PIPE,
    stderr: int | None = PIPE,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> ForkedProcess:
    """Start Python with these arguments: "-m" and a module, "-c" and code, or a file, then those of the program."""
    message = {
        "arguments": [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in arguments],
        "cwd": os.fspath(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
    }
    theirs, ours = [], []
    for number, wanted in enumerate((stdin, stdout, stderr)):
        stream = None
        if wanted == PIPE:
            reader, writer = os.pipe()
            own, other, mode = (writer, reader, "w") if number == 0 else (reader, writer, "r")
            stream = os.fdopen(own, mode, encoding="utf-8", buffering=1)
        elif wanted == DEVNULL:
            other = os.open(os.devnull, os.O_RDWR)
        else:
            other = os.dup(number if wanted is None else wanted)
        ours.append(stream)
        theirs.append(other)
    status, reported = os.pipe()
    socket.send_fds(_server(), [json.dumps(message).encode()], [*theirs, reported])
    for each in (*theirs, reported):
        os.close(each)
    return ForkedProcess(status, ours[0], ours[1], ours[2])


def run(
    *arguments: object, input: str | None = None, timeout: float | None = 120, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments to its end; see `start`."""
    process = start(*arguments, stdin=DEVNULL if input is None else PIPE, **options)
    try:
        done = process.finish(input, timeout)
    finally:
        process.kill()
    if check:
        done.check_returncode()
    return done


@functools.cache
def _server() -> socket.socket:
    """The connection to the server of this run, which ends when the connection does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MESSAGE_BYTES)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=DEVNULL,
            stdout=DEVNULL,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,
        )
    atexit.register(_end, ours, process)
    return ours


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.wait()


def serve(connection: socket.socket) -> None:
    """Start a process for each message. Returns in each of them when its program has ended, and at the end."""
    for name in PRELOAD:
        importlib.import_module(name)
    gc.freeze()  # what all processes share is not looked at, and so not copied, in each of them
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([connection.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _report_ended(statuses)
        if connection.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, 4)
        if not data:  # the process that started this one has ended
            for pid in statuses:
                os.kill(pid, signal.SIGKILL)
            return
        *streams, status = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for each in (connection.detach(), wake, woken, *descriptors, *statuses.values()):
                os.close(each)
            _run_program(**json.loads(data))
            return
        statuses[pid] = status
        os.write(status, NUMBER.pack(pid))
        for stream in streams:
            os.close(stream)


def _report_ended(statuses: dict[int, int]) -> None:
    while statuses:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        status = statuses.pop(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(status, NUMBER.pack(os.waitstatus_to_exitcode(code)))
        os.close(status)


def _run_program(arguments: list[str], cwd: str, env: dict[str, str]) -> None:
    """What `python ARGUMENTS` does."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    first, *rest = arguments
    if first == "-c":
        code, *words = rest
        sys.argv, sys.path[0] = ["-c", *words], ""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.argv, sys.path[0] = rest, cwd
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
