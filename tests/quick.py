"""Which tests are quick: those that train nothing, start no process and take less than half a second.

`pytest -m quick` runs them; a test that trains or starts a process fails there, with a message that says what to do.
`pytest --record-slow` writes all others to tests/slow.txt: one function to a line, or one file where all its functions
are slow. It stops a test where it begins to train or to start a process, so it takes little longer than the quick
tests. With paths it replaces the lines of these files only. A test that is not in the record is quick.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing.process
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import Failed
from _pytest.runner import runtestprotocol
from tests import fork_server

RECORD = Path(__file__).with_name("slow.txt")
SLOW_SECONDS = 0.5  # of a test with its own fixtures, or of a fixture that several tests share
STILL_SLOW_SECONDS = 0.3  # of what is in the record; so a test near the limit does not change with every recording
GIVE_UP_SECONDS = 3.0  # of processor time, after which a test that is measured is stopped
HEAVY = ("matplotlib.pyplot", "onnxruntime", "pandas", "scipy.stats", "sklearn.metrics", "transformers")
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}

Wrapper = Generator[None, Any, Any]


class NotQuick(Failed):
    """Ends a test that does what no quick test does. No `except Exception` on the way stops it."""


class QuickTests:
    """Marks the quick tests, and watches tests where only quick ones run or where they are recorded."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.slow = frozenset(RECORD.read_text(encoding="utf-8").split()) if RECORD.exists() else frozenset()
        self.only_quick = config.option.markexpr == "quick"
        self.record: bool = config.option.record_slow
        self.writes = self.record and not hasattr(config, "workerinput")
        self.running: str | None = None
        self.refused: str | None = None
        self.shared_seconds = 0.0  # of fixtures that were set up for this test and for others
        self.slow_fixtures: dict[pytest.FixtureDef[Any], str] = {}
        self.functions: dict[str, set[str]] = defaultdict(set)  # of each file
        self.reasons: dict[str, str] = {}
        if self.record and (config.option.markexpr or config.option.keyword):
            raise pytest.UsageError("--record-slow measures whole files: leave -m and -k out")
        if self.record or self.only_quick:
            self._watch()

    def _watch(self) -> None:
        import regard.training.pretrain as pretrain
        import regard.training.train as train

        for owner, name, what in (
            (train, "train", "calls train"),
            (pretrain, "pretrain", "calls pretrain"),
            (multiprocessing.process.BaseProcess, "start", "starts a process"),
            (fork_server, "start", "starts a process"),
        ):
            setattr(owner, name, self._refusing(what, getattr(owner, name)))
        sys.addaudithook(self._audit)
        if self.record:
            for name in HEAVY:  # the test that happens to import them first is not slower than the others
                importlib.import_module(name)
            signal.signal(signal.SIGPROF, lambda *_: self._refuse("takes very long"))

    def _refusing(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def refuse(*arguments: Any, **settings: Any) -> Any:
            self._refuse(what)
            return function(*arguments, **settings)

        return refuse

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in PROCESS_EVENTS:
            self._refuse("starts a process")

    def _refuse(self, what: str) -> None:
        if self.running is not None:
            self.refused = what
            raise NotQuick(f"{self.running} {what}, which no quick test does: note it with `make record`")

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Modules whose tests are all slow are not even imported for the quick ones."""
        if self.only_quick and collection_path.suffix == ".py":
            return collection_path.relative_to(self.root).as_posix() in self.slow or None
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if self.slow.isdisjoint(ids(item.nodeid)):
                item.add_marker("quick")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        self.running = item.nodeid
        if not self.record:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports, slow = self._measured(item, nextitem)
        if slow == "takes long":  # once more: the first time may have filled a cache
            item._initrequest()  # type: ignore[attr-defined]
            reports, slow = self._measured(item, nextitem)
        for report in reports:
            report.user_properties.append(("slow", slow))
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _measured(self, item: pytest.Item, nextitem: pytest.Item | None) -> tuple[list[pytest.TestReport], str | None]:
        """Run a test; what it did that no quick test does."""
        self.refused = None
        self.shared_seconds = 0.0
        signal.setitimer(signal.ITIMER_PROF, GIVE_UP_SECONDS)
        begin = unloaded_time()
        try:
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = unloaded_time() - begin - self.shared_seconds
        if self.refused is None and seconds > self._limit(item):
            self.refused = "takes long"
        return reports, self.refused or self._slow_fixture(item)

    def _slow_fixture(self, item: pytest.Item) -> str | None:
        """What a fixture that the test shares with others did that no quick test does."""
        for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
            for definition in definitions:
                if definition in self.slow_fixtures:
                    return self.slow_fixtures[definition]
        return None

    def _limit(self, item: pytest.Item) -> float:
        return SLOW_SECONDS if self.slow.isdisjoint(ids(item.nodeid)) else STILL_SLOW_SECONDS

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Wrapper:
        if not self.record or fixturedef.scope == "function":
            return (yield)
        before = self.shared_seconds
        begin = unloaded_time()
        try:
            return (yield)
        finally:
            seconds = unloaded_time() - begin
            if self.refused is not None:
                self.slow_fixtures[fixturedef] = self.refused
            elif seconds - (self.shared_seconds - before) > self._limit(request.node):
                self.slow_fixtures[fixturedef] = "takes long"
            else:
                self.slow_fixtures.pop(fixturedef, None)  # the first time may have filled a cache
            self.shared_seconds = before + seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Wrapper:
        report: pytest.TestReport = yield
        refused = call.excinfo is not None and call.excinfo.errisinstance(NotQuick)
        if self.record and (refused or (self.refused is not None and report.failed)):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"slow: {self.refused}")
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.writes:
            path, function = ids(report.nodeid)
            self.functions[path].add(function)
            slow = dict(report.user_properties).get("slow")
            if slow is not None:
                self.reasons[function] = str(slow)

    def pytest_sessionfinish(self) -> None:
        if not self.writes:
            return
        lines = {line for line in self.slow if line.split("::")[0] not in self.functions}
        lines = {line for line in lines if (self.root / line.split("::")[0]).exists()}
        for path, functions in self.functions.items():
            slow = functions & self.reasons.keys()
            lines |= {path} if slow == functions else slow
        RECORD.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def ids(node: str) -> tuple[str, str]:
    """File and function of a test."""
    function = node.split("[")[0]
    return function.split("::")[0], function


def unloaded_time() -> float:
    """Seconds, without those in which other programs had the processor."""
    waited = Path("/proc/thread-self/schedstat")
    try:
        return time.perf_counter() - int(waited.read_text().split()[1]) / 1e9
    except OSError:
        return time.perf_counter()
