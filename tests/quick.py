"""Which tests are quick: those that train nothing, start no process and take, all cases of a function together, less
than half a second.

`pytest -m quick` runs them; a test that trains or starts a process fails there, with a message that says what to do.
`pytest --record-slow` writes all others to tests/slow.txt: one function to a line, or one file where all its functions
are slow. It stops a test where it begins to train or to start a process, so it takes little longer than the quick
tests. With paths it replaces the lines of these files only. A test that is not in the record is quick.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing.process
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
SLOW_SECONDS = 0.5  # of all cases of a test with their own fixtures, or of a fixture that several tests share
STILL_SLOW_SECONDS = 0.3  # of what is in the record; so a test near the limit does not change with every recording
SURELY_SLOW_SECONDS = 2.0  # what takes longer is not measured again
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
        self.seconds: dict[str, float] = defaultdict(float)  # of all cases of a test
        self.refused_functions: set[str] = set()
        if self.record and (config.option.markexpr or config.option.keyword):
            raise pytest.UsageError("--record-slow measures whole files: leave -m and -k out")
        if self.record or self.only_quick:
            self._watch()

    def _watch(self) -> None:
        import playwright.sync_api

        import regard.training.pretrain as pretrain
        import regard.training.train as train

        for owner, name, what in (
            (train, "train", "calls train"),
            (pretrain, "pretrain", "calls pretrain"),
            (multiprocessing.process.BaseProcess, "start", "starts a process"),
            (fork_server, "start", "starts a process"),
            (playwright.sync_api, "sync_playwright", "starts a browser"),
        ):
            setattr(owner, name, self._refusing(what, getattr(owner, name)))
        sys.addaudithook(self._audit)
        if self.record:
            for name in HEAVY:  # the test that happens to import them first is not slower than the others
                importlib.import_module(name)

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
        reports, seconds = self._measured(item, nextitem)
        if SLOW_SECONDS / 4 < seconds < SURELY_SLOW_SECONDS:  # once more: the first time may have filled a cache
            item._initrequest()  # type: ignore[attr-defined]
            reports, seconds = self._measured(item, nextitem)
        reports[-1].user_properties.append(("seconds", seconds))
        for report in reports:
            report.user_properties.append(("refused", self._reason(item)))
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _measured(self, item: pytest.Item, nextitem: pytest.Item | None) -> tuple[list[pytest.TestReport], float]:
        """Run a test; the seconds it took, without those of fixtures that others share."""
        self.refused = None
        self.shared_seconds = 0.0
        begin = unloaded_time()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        return reports, unloaded_time() - begin - self.shared_seconds

    def _reason(self, item: pytest.Item) -> str | None:
        """What the test or a fixture that it shares with others did that no quick test does."""
        definitions = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
        shared = [self.slow_fixtures.get(definition) for group in definitions for definition in group]
        return next(filter(None, [self.refused, *shared]), None)

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
            elif seconds - (self.shared_seconds - before) > SLOW_SECONDS:
                self.slow_fixtures[fixturedef] = "takes long"
            else:
                self.slow_fixtures.pop(fixturedef, None)  # the first time may have filled a cache
            self.shared_seconds = before + seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Wrapper:
        report: pytest.TestReport = yield
        reason = self._reason(item) if self.record and report.failed else None
        if reason is not None:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"slow: {reason}")
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.writes:
            path, function = ids(report.nodeid)
            self.functions[path].add(function)
            properties = dict(report.user_properties)
            if properties.get("refused") is not None:
                self.refused_functions.add(function)
            self.seconds[function] += float(properties.get("seconds", 0))  # type: ignore[arg-type]

    def pytest_sessionfinish(self) -> None:
        if not self.writes:
            return
        lines = {line for line in self.slow if line.split("::")[0] not in self.functions}
        lines = {line for line in lines if (self.root / line.split("::")[0]).exists()}
        for path, functions in self.functions.items():
            slow = {function for function in functions if self._is_slow(function)}
            lines |= {path} if slow == functions else slow
        RECORD.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")

    def _is_slow(self, function: str) -> bool:
        limit = SLOW_SECONDS if self.slow.isdisjoint(ids(function)) else STILL_SLOW_SECONDS
        return function in self.refused_functions or self.seconds[function] > limit


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
