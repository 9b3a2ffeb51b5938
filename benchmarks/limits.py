"""Processor times that must not grow: each is measured and compared with its limit.

    python benchmarks/limits.py --sets ../shared/data

With --sets, public data sets are checked too (`regard check`), each in less than a minute and with known findings.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.data.check.run import check
from regard.metrics.confidence import with_ones
from regard.metrics.meter import AnswerMeter, LabelMeter, MeanMeter, Meter, NumberMeter, TokenMeter
from regard.metrics.paired.resample import bootstrap_scores, swapped_scores
from regard.metrics.paired.rows import RowScore, RowTable
from regard.tasks.answer import best_spans

METERS: dict[str, tuple[Callable[[], Meter], tuple[Any, ...]]] = {
    "label": (lambda: LabelMeter(["no", "yes"]), ("no", "yes")),
    "number": (NumberMeter, (1.0, 1.5)),
    "token": (TokenMeter, (["X", "Y"], ["X", "X"])),
    "answer": (AnswerMeter, ("a dog", ["dog house"])),
    "mean": (lambda: MeanMeter("masked_accuracy"), (3, 4)),
}
# Set, rows, and the counts of some findings that were looked at by hand.
SETS = [
    ("imdb", 25_000, {"duplicate": 96}),
    ("sst2", 67_349, {"label-conflict": 133, "duplicate": 366}),
    ("conll2003", 17_291, {"leak": 185, "label-conflict": 3}),
    ("squad", 87_599, {"duplicate": 96, "answer-inside-word": 126}),
    ("eng_spa", 115_384, {"near-leak": 89, "length-mismatch": 1}),
]
IMPORT = """
import time
start = time.process_time()
import torch
middle = time.process_time()
import regard; regard.load
print((time.process_time() - start) / (middle - start))
"""
Limit = tuple[str, float, float]  # what is measured, the measurement, its limit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, help="folder of public data sets")
    arguments = parser.parse_args()
    exceeded = 0
    for name, value, limit in limits(arguments.sets):
        exceeded += value > limit
        print(f"{name}: {value:.4g}, limit {limit:g}{'' if value <= limit else ' EXCEEDED'}")
    sys.exit(1 if exceeded else 0)


def limits(sets: Path | None) -> Iterator[Limit]:
    yield "import of regard with what loading a model needs, times the import of torch", import_ratio(), 1.2
    yield "milliseconds to find the best of 384 × 384 answers", 1000 * min(search_times()), 1
    for name in METERS:
        yield f"microseconds of the {name} meter for one row", 1e6 * meter_seconds(name), 200
    yield "seconds for 10,000 resamples of 10,000 rows", resampling_seconds(), 10
    lengths = np.clip(np.exp(np.random.default_rng(0).normal(np.log(128) - 0.5, 1, 1_000_000)), 3, 512)
    start = time.process_time()
    plan = BatchPlan(lengths.astype(np.int64), BatchSettings(16_384))
    steps = plan.steps
    yield "seconds to plan the batches of a million sequences", time.process_time() - start, 10
    start = time.process_time()
    plan.at(0, steps - 1).rows(steps - 1)
    yield "seconds to read its last step", time.process_time() - start, 0.1
    for name, rows, counts in SETS if sets else []:
        yield f"seconds to check {name}", checked_seconds(Path(sets or ".") / name, rows, counts), 60


def import_ratio() -> float:
    ratios = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(5)]
    return statistics.median(ratios)


def search_times() -> Iterator[float]:
    starts, ends = np.random.default_rng(0).normal(size=(2, 384)).astype(np.float32)
    for _ in range(50):
        start = time.process_time()
        best_spans(starts, ends, max_length=30)
        yield time.process_time() - start


def meter_seconds(name: str) -> float:
    make, row = METERS[name]
    meter, rows = make(), 20_480
    start = time.process_time()
    for _ in range(rows):
        meter.add(*row)
    meter.scores()
    return (time.process_time() - start) / rows


def resampling_seconds() -> float:
    generator = np.random.default_rng(7)
    values = [with_ones(generator.normal(size=10_000)) for _ in range(2)]
    first, second = (RowTable(column, {"mean": RowScore((0, 1))}) for column in values)
    start = time.process_time()
    bootstrap_scores([first, second], "mean", resamples=10_000)
    swapped_scores(first, second, "mean", resamples=10_000)
    return time.process_time() - start


def checked_seconds(path: Path, rows: int, counts: dict[str, int]) -> float:
    report = check(path)
    results = {finding.kind: finding.count for finding in report.findings}
    if report.rows != rows or any(results.get(kind) != count for kind, count in counts.items()):
        sys.exit(f"{path}: {report.rows} rows with {results}, expected {rows} with {counts}")
    return report.seconds


if __name__ == "__main__":
    main()
