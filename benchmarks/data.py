"""Text and data: how long it takes, and how much memory.

    python benchmarks/data.py --only learn --corpus wikipedia-2015.txt.xz

Each part runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One thing measured, and what was hoped for."""

    case: str
    value: float
    unit: str
    target: str = ""


LEARN = """
import json, resource, sys, time, warnings
from regard.text.learn import learn
warnings.simplefilter("ignore")
start, kind, size, files = time.perf_counter(), sys.argv[1], int(sys.argv[2]), sys.argv[3:]
learned = learn(files, kind=kind, size=size)
seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "peak": peak, "size": learned.size}))
"""


def learn(given: argparse.Namespace) -> list[Figure]:
    """A vocabulary from the corpus."""
    command = [sys.executable, "-c", LEARN, given.kind, str(given.size), *map(str, given.corpus)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(said)
    case = f"{given.kind}, {found['size']:,} pieces, from {', '.join(path.name for path in given.corpus)}"
    return [
        Figure(f"learn: {case}", found["seconds"], "s"),
        Figure(f"learn: {case}, peak memory", found["peak"] / 1e9, "GB", "< 2"),
    ]


PARTS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {"learn": learn}


def table(figures: list[Figure]) -> str:
    lines = ["| case | value | target |", "|---|---|---|"]
    lines += [f"| {figure.case} | {figure.value:.2f} {figure.unit} | {figure.target} |" for figure in figures]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="text files, plain, .gz or .xz")
    parser.add_argument("--kind", default="wordpiece", help="of vocabulary")
    parser.add_argument("--size", type=int, default=16_000, help="of the vocabulary")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    figures = [figure for part in given.only for figure in PARTS[part](given)]
    machine = f"{platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    name = f"data-{'-'.join(given.only)}"
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / f"{name}.md").write_text(f"Text and data\n\n{machine}\n\n{table(figures)}\n", encoding="utf-8")
    numbers = {"machine": machine, "figures": [asdict(figure) for figure in figures]}
    (given.out / f"{name}.json").write_text(json.dumps(numbers, indent=2), encoding="utf-8")
    print(table(figures))


if __name__ == "__main__":
    main()
