"""`regard bench`."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import Json, check_output
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_status, progress_bar
from regard.progress import Progress

if TYPE_CHECKING:
    from regard.serve.load_test.load import LoadResult
    from regard.serve.load_test.workload import Workload

HELP = """Measure a server that runs: throughput and latencies at given rates, and the highest rate that holds a goal.

Examples:
  regard bench serve http://127.0.0.1:8000 --route /predict
  regard bench serve http://127.0.0.1:8000 --rate 50 100 200 --seconds 20   at these requests per second
  regard bench serve http://127.0.0.1:8000 --goal-ms 50 --plot load.png     the highest rate with p99 below 50 ms
  regard bench serve http://127.0.0.1:8000 --texts texts.txt --json         with texts of your own, one per line

Requests come at random times (a Poisson process), and none waits for an earlier one. Texts are random words, their
lengths log-normal. Without --rate, the rate is doubled until the goal fails, then bisected. The load generator needs
processor time too: run it on another machine for exact numbers."""


@dataclass(frozen=True)
class BenchCommand:
    what: Annotated[Positional[Literal["serve"]], arg(help="What to measure: serve, a server.", metavar="serve")]
    url: Annotated[Positional[str], arg(help="Address of the server.", metavar="URL")]
    route: Annotated[str, arg(help="Route to ask, with one text per request.")] = "/embed"
    rate: Annotated[
        tuple[float, ...], arg(help="Requests per second; the best rate is searched for if not given.", metavar="N...")
    ] = ()
    seconds: Annotated[float, arg(help="Seconds for each rate.")] = 10.0
    goal_ms: Annotated[float, arg(help="Milliseconds that 99 % of the answers may take.")] = 100.0
    texts: Annotated[Path | None, arg(help="File with one text per line, in place of random words.")] = None
    mean_tokens: Annotated[float, arg(help="Mean length of the random texts in words.")] = 24.0
    sigma: Annotated[float, arg(help="Standard deviation of the logarithm of the lengths.")] = 0.6
    model: Annotated[str | None, arg(help="Name of the model on the server.")] = None
    api_key_file: Annotated[Path | None, arg(help="File whose first line is an API key of the server.")] = None
    timeout: Annotated[float, arg(help="Seconds to wait for an answer.")] = 30.0
    seed: Annotated[int, arg(help="Seed of the times and texts.")] = 0
    plot: Annotated[Path | None, arg(help="Draw latencies and throughput to this file.", metavar="FILE.png")] = None
    json: Json = False


def run(command: BenchCommand) -> None:
    if command.plot is not None and command.plot.suffix.lower() != ".png":
        raise UsageError(f"--plot {command.plot}: expected a name that ends in .png.")
    check_output(command.plot, "--plot", inputs=(command.texts,))
    for name in ("goal_ms", "seconds", "timeout"):
        if not getattr(command, name) > 0:
            raise UsageError(f"--{name.replace('_', '-')} is {getattr(command, name):g}, expected more than 0.")
    from regard.serve.load_test.load import best_rate
    from regard.serve.load_test.plot import plot_load

    results = _measure(command)
    best = best_rate(results, goal_ms=command.goal_ms)
    if command.plot is not None:
        plot_load(results, command.plot, goal_ms=command.goal_ms)
    if command.json:
        print_json(
            {
                "url": command.url,
                "route": command.route,
                "goal_ms": command.goal_ms,
                "best_rate": best,
                "load_average": os.getloadavg()[0],
                "results": [_result_json(one) for one in results],
            }
        )
    else:
        _print(results, best, command.goal_ms)


def _measure(command: BenchCommand) -> Sequence[LoadResult]:
    from regard.client import Client, ServerError
    from regard.errors import InputError
    from regard.serve.load_test.load import search_rate
    from regard.serve.load_test.run import LoadTest

    workload, headers = _workload(command)
    test = LoadTest(command.url, workload, headers, seconds=command.seconds, timeout=command.timeout, seed=command.seed)
    try:
        test.first_answer()
    except (OSError, ServerError) as error:
        raise InputError(f"{Client(command.url).url} does not answer {command.route} ({error}).") from error
    with progress_bar() as bar:
        count = 0

        def measure(rate: float) -> LoadResult:
            nonlocal count
            if bar is not None:
                bar(Progress(f"{rate:g} requests per second", count, len(command.rate) or None))
            count += 1
            return test.measure(rate)

        if command.rate:
            return [measure(rate) for rate in command.rate]
        return search_rate(measure, goal_ms=command.goal_ms)


def _workload(command: BenchCommand) -> tuple[Workload, dict[str, str]]:
    from regard.serve.load_test.workload import Workload, read_texts

    texts = [] if command.texts is None else read_texts(command.texts)
    fields: tuple[tuple[str, Any], ...] = () if command.model is None else (("model", command.model),)
    workload = Workload(command.route, texts, command.mean_tokens, command.sigma, fields)
    if command.api_key_file is None:
        return workload, {}
    (key,) = read_texts(command.api_key_file)[:1]
    return workload, {"Authorization": f"Bearer {key}"}


def _result_json(one: LoadResult) -> dict[str, Any]:
    values = dataclasses.asdict(one)
    return {name: None if value == math.inf else value for name, value in values.items()}


def _print(results: Sequence[LoadResult], best: float | None, goal_ms: float) -> None:
    names = ("requests/s", "answers/s", "p50 ms", "p95 ms", "p99 ms", "requests")
    print("  ".join(f"{name:>10}" for name in names) + "  errors")
    for one in results:
        numbers = (one.rate, one.throughput, one.p50_ms, one.p95_ms, one.p99_ms)
        errors = ", ".join(f"{status}: {count}" for status, count in sorted(one.errors.items())) or "none"
        print("  ".join(f"{number:>10.1f}" for number in numbers) + f"  {one.requests:>10}  {errors}")
    if best is None:
        print(f"no rate holds p99 below {goal_ms:g} ms")
    else:
        print(f"highest rate with p99 below {goal_ms:g} ms: {best:.1f} requests per second")
    load = os.getloadavg()[0]
    if load > (os.cpu_count() or 1) + 1:
        print_status(f"warning: the load of this machine is {load:.1f}; other programs slow down what was measured")


COMMAND = Command(name="bench", arguments=BenchCommand, help=HELP, run=run)
