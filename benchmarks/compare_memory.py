"""Does a comparison keep its memory flat in the number of models? Resident memory after each of four real models.

    python benchmarks/compare_memory.py ../shared/data/sst2/train.tsv.gz --rows 10000

Networks are trained for a few steps only: their number does not change what stays in memory. The peak includes the
model that is being trained or scored; what counts is that the memory after a model does not grow with their number.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
from pathlib import Path

import regard
from regard.progress import Progress

MODELS = ("ngram", "static", "bert-mini", "minilm")


def memory(name: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process, in MB."""
    match = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert match is not None
    return int(match[1]) / 1024


def rows_of(path: Path, count: int) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        table = csv.DictReader(file, delimiter="\t" if ".tsv" in path.name else ",", quoting=csv.QUOTE_NONE)
        rows = [{"text": row["sentence"], "label": row["label"]} for row in table]
    return rows[:: max(len(rows) // count, 1)][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--models", nargs="+", default=MODELS)
    arguments = parser.parse_args()
    rows = rows_of(arguments.data, arguments.rows)
    print(f"{len(rows):,} rows; before the first model {memory('VmRSS'):.0f} MB\n\n| model | after it, MB | peak, MB |")
    print("|---|---|---|")

    def shown(event: Progress) -> None:
        if event.done and "training" not in str(event.values["message"]):
            cells = (event.values["model"], f"{memory('VmRSS'):.0f}", f"{memory('VmHWM'):.0f}")
            print(f"| {' | '.join(cells)} |", flush=True)

    result = regard.compare(rows, models=arguments.models, steps=arguments.steps, progress=shown)
    print(f"\nafter the comparison {memory('VmRSS'):.0f} MB. {result.verdict}")


if __name__ == "__main__":
    main()
