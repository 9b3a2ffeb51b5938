"""Run numbered cases of a fuzzer and record what is neither success nor an error of regard. See README.md."""

from __future__ import annotations

import importlib
import os
import random
import resource
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

SECONDS = 10.0  # of processor time; three times as many on the clock, which other work on the machine moves too
BYTES = 2 << 30
HERE = Path(__file__).resolve().parent
FAILURES = HERE / "failures.txt"
READABLE = ("/proc", "/sys", "/dev/null", "/dev/urandom", "/dev/random", "/etc/localtime", "/usr/share/zoneinfo")
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.getaddrinfo")
OPENING = ("open", "os.listdir", "os.scandir")
CHANGING = {  # audit events: how many names they have, and where the folders stand that these are relative to
    "os.remove": (1, 1),
    "os.rmdir": (1, 1),
    "os.mkdir": (1, 2),
    "os.chmod": (1, 2),
    "os.truncate": (1, 9),
    "os.rename": (2, 2),
    "os.symlink": (2, 2),
    "os.link": (2, 2),
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Hang(BaseException):
    """Raised into a case that runs too long."""


@dataclass(frozen=True)
class Failure:
    """What went wrong in one case."""

    fuzzer: str
    case: int
    kind: str  # exception, hang, memory, outside, process, crash
    message: str

    def __str__(self) -> str:
        return f"{self.fuzzer} case {self.case}: {self.kind}: {self.message}"


@dataclass
class _Watch:
    """What the audit hook sees while a case runs."""

    folder: str
    events: list[tuple[str, str]] = field(default_factory=list)

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in FORBIDDEN:
            self.events.append(("process", f"{event} {arguments[:1]!r:.200}"))
        elif event in OPENING and arguments and isinstance(arguments[0], str | bytes | os.PathLike):
            flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
            self._see_path(os.fsdecode(arguments[0]), writes=bool(flags & WRITING))
        elif event in CHANGING:
            self._see_change(event, arguments)

    def _see_path(self, path: str, *, writes: bool) -> None:
        if "\0" in path or not (writes or os.path.lexists(path)):  # nothing is there, or it is in a folder that is open
            return
        real = os.path.realpath(path)
        if _within(real, (self.folder, *_environment())):
            return
        self.events.append(("outside", f"opened {real}{' for writing' if writes else ''}"))
        if writes:
            raise PermissionError(f"a case may write only in its own folder, not {real}")

    def _see_change(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Names are changed, not what links of that name lead to. Those in a folder that is open are its own."""
        count, place = CHANGING[event]
        if any(number != -1 for number in arguments[place:]):
            return
        names = arguments[1:2] if event in ("os.symlink", "os.link") else arguments[:count]
        for name in (Path(os.fsdecode(name)) for name in names if not isinstance(name, int)):
            real = str(Path(os.path.realpath(name.parent)) / name.name)
            if not _within(real, (self.folder, *_environment())):
                self.events.append(("outside", f"{event} {real}"))
                raise PermissionError(f"a case may change only its own folder, not {real}")


_watch: _Watch | None = None
_hooked = False
_roots: tuple[str, ...] = ()


def _environment() -> tuple[str, ...]:
    """Where Python, its packages and regard itself lie."""
    global _roots
    if not _roots:
        import regard

        own = [sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), str(Path(regard.__file__).parent)]
        _roots = (*READABLE, *sorted({os.path.realpath(root) for root in own}))
    return _roots


def _within(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root + os.sep) for root in roots)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    watch = _watch
    if watch is not None and (event in OPENING or event in FORBIDDEN or event in CHANGING):
        watch.see(event, arguments)


@contextmanager
def _watched(folder: Path) -> Iterator[_Watch]:
    global _watch, _hooked
    _environment()
    if not _hooked:
        sys.addaudithook(_hook)  # cannot be removed: it is idle without a watch
        _hooked = True
    _watch = watch = _Watch(os.path.realpath(folder))
    try:
        yield watch
    finally:
        _watch = None


class Clock:
    """Time since it was made."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.start, self.busy = time.monotonic(), time.process_time()

    def is_over(self) -> bool:
        busy, elapsed = time.process_time() - self.busy, time.monotonic() - self.start
        return busy > self.seconds or elapsed > 3 * self.seconds


@contextmanager
def _limited(seconds: float, memory: int) -> Iterator[None]:
    """Raise `Hang` after some seconds, and let allocations far beyond the memory fail rather than take the machine."""
    clock = Clock(seconds)

    def stop(*_: object) -> None:
        if clock.is_over():
            raise Hang(f"ran for more than {seconds:g} seconds")
        signal.setitimer(signal.ITIMER_REAL, seconds / 10)

    handler = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    data = _status("VmData")
    if data:
        resource.setrlimit(resource.RLIMIT_DATA, (data + memory, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _status(name: str) -> int:
    """A number of bytes from the system's view of this process; 0 where it has none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 0)


def _reset_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def names() -> list[str]:
    """All fuzzers."""
    return sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))


def recorded(name: str) -> list[tuple[int, int]]:
    """The seed and the number of each case of a fuzzer that failed once."""
    lines = [line.split() for line in FAILURES.read_text().splitlines() if not line.startswith("#")]
    return [(int(seed), int(case)) for fuzzer, seed, case in lines if fuzzer == name]


def record(name: str, seed: int, cases: Iterable[int]) -> None:
    """Add cases that failed to those that `make test` runs."""
    new = sorted({(seed, case) for case in cases} - set(recorded(name)))
    with FAILURES.open("a") as file:
        file.writelines(f"{name} {one} {case}\n" for one, case in new)


def load(name: str) -> ModuleType:
    """The module of a fuzzer, prepared."""
    module = importlib.import_module(f"tests.fuzz.fuzz_{name}")
    if not getattr(module, "prepared", False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(module, "prepare", _nothing)()
        module.prepared = True  # type: ignore[attr-defined]
    return module


def _nothing() -> None:
    pass


def run_case(
    name: str,
    case: int,
    seed: int = 0,
    *,
    keep: Path | None = None,
    debug: bool = False,
    seconds: float = SECONDS,
    memory: int = BYTES,
) -> list[Failure]:
    """Run one case; nothing is returned where all went well. `debug` prints the error of the case."""
    from regard.errors import RegardError

    fuzz: Callable[[random.Random, Path], object] = load(name).fuzz
    folder = keep if keep is not None else Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"{name} {seed} {case}")
    error: BaseException | None = None
    _reset_peak()
    before, clock = _status("VmRSS"), Clock(seconds)
    try:
        with _watched(folder) as watch, warnings.catch_warnings(), _limited(seconds, memory):
            warnings.simplefilter("ignore")
            fuzz(draw, folder)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        error = caught
    hung, grown = clock.is_over(), _status("VmHWM") - before
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    if debug and error is not None:
        traceback.print_exception(error)
    results = list(dict.fromkeys(watch.events))
    if hung:
        results.append(("hang", _described(error)))
    elif error is not None and not isinstance(error, RegardError):
        results.append(("exception", _described(error)))
    if grown > memory or _lacked_memory(error):
        results.append(("memory", f"grew by {grown / 2**30:.2f} GB. {_described(error)}"))
    return [Failure(name, case, kind, message) for kind, message in results]


def _described(error: BaseException | None) -> str:
    """The error with the innermost lines of regard that raised it."""
    if error is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if "regard" in frame.filename]
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message[:200]} ({' > '.join(own[-3:])})"


def _lacked_memory(error: BaseException | None) -> bool:
    """Whether an allocation failed, also where an error of regard stands for it."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error) or "not enough memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
