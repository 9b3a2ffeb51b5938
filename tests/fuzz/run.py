"""Fuzzers by hand: any number of cases, in a process of their own that is replaced when it hangs or crashes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.harness import SECONDS, Failure, load, names, record, run_case

GRACE = 30.0  # seconds beyond the limit until a process that does not answer is killed
START = 300.0  # seconds to import and prepare


def _work(name: str, first: int, stop: int, seed: int, channel: Connection) -> None:
    load(name)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # panics of tokenizers print a line each
    channel.send(())
    for case in range(first, stop):
        channel.send(run_case(name, case, seed))


class Worker:
    """The process that runs the cases from `first` on."""

    def __init__(self, name: str, first: int, stop: int, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.channel, other = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(name, first, stop, seed, other), daemon=True)
        self.process.start()
        other.close()
        self.receive(START)

    def receive(self, seconds: float) -> list[Failure]:
        if not self.channel.poll(seconds):
            raise TimeoutError
        result = self.channel.recv()
        return list(result)

    def end(self) -> int | None:
        self.process.kill()
        self.process.join()
        return self.process.exitcode


def run(name: str, first: int, count: int, seed: int) -> list[Failure]:
    """The failures of so many cases, printed as they come."""
    failures: list[Failure] = []
    case, stop, shown = first, first + count, time.monotonic()
    worker = Worker(name, case, stop, seed)
    while case < stop:
        try:
            result = worker.receive(3 * SECONDS + GRACE)
        except TimeoutError:
            result = [Failure(name, case, "hang", "the process did not answer")]
        except EOFError:
            worker.process.join()
            result = [Failure(name, case, "crash", f"the process ended with {worker.process.exitcode}")]
        else:
            case += 1
            failures += _shown(result)
            if time.monotonic() > shown + 20:
                shown = time.monotonic()
                print(f"{name}: {case - first:,} of {count:,} cases, {len(failures)} failures", flush=True)
            continue
        failures += _shown(result)
        worker.end()
        case += 1
        if case < stop:
            worker = Worker(name, case, stop, seed)
    worker.end()
    return failures


def _shown(results: list[Failure]) -> list[Failure]:
    for failure in results:
        print(failure, flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("fuzzer", nargs="*", help=f"names, by default all: {', '.join(names())}")
    parser.add_argument("--cases", type=int, default=1000, help="number of cases of each")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this case of one fuzzer alone, in this process")
    parser.add_argument("--keep", type=Path, help="with --case: folder for the input of the case, which is kept")
    arguments = parser.parse_args()
    fuzzers = arguments.fuzzer or names()
    if unknown := set(fuzzers) - set(names()):
        parser.error(f"no fuzzer is called {unknown.pop()}")
    if arguments.case is not None:
        if len(fuzzers) != 1:
            parser.error("--case is for one fuzzer")
        return bool(_shown(run_case(fuzzers[0], arguments.case, arguments.seed, keep=arguments.keep, debug=True)))
    failed = [name for name in fuzzers if _run_and_record(name, arguments)]
    return bool(failed)


def _run_and_record(name: str, arguments: argparse.Namespace) -> bool:
    """Whether any case failed; those that did are recorded."""
    began = time.monotonic()
    failures = run(name, arguments.first, arguments.cases, arguments.seed)
    record(name, arguments.seed, [failure.case for failure in failures])
    kinds = Counter(failure.kind for failure in failures)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "0 failures"
    print(f"{name}: {arguments.cases:,} cases in {time.monotonic() - began:.0f} s, seed {arguments.seed}; {counts}")
    if failures:
        print("repeat with --case:", *sorted({failure.case for failure in failures})[:50])
    return bool(failures)
