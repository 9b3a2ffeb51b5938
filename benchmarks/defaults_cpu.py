"""CPU seconds and scores of the defaults beside those before the study of defaults.md, on small parts of three sets.

    OMP_NUM_THREADS=1 python benchmarks/defaults_cpu.py --data DATA [--rows 400] [--draws 3] [--test-rows 1000]

"before": a random head on the first token, the model's own dropout, the learning rate and epochs of that time, a tenth
of the rows for validation, sentences without context. "now": nothing is given. Both are trained on the same rows, one
after the other, in this process; its CPU time counts all threads, so other work on the machine matters little. Scores
are those of test rows that are split off; tags are scored on the set's validation rows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from defaults import SETS, split

import regard
from regard.training.load_data import fingerprint, load_data

MAIN = {"classify": "accuracy", "pair": "accuracy", "tag": "f1"}
EPOCHS = ((500, 8), (2_000, 6), (8_000, 5), (30_000, 4))  # of that time, up to so many rows


def before(task: str, rows: int) -> dict[str, Any]:
    """The defaults for minilm before the study."""
    base = 1.5e-4 if rows <= 2_000 else 1e-4
    texts = max(8.0, min(32.0, rows / 25))
    settings: dict[str, Any] = {
        "lr": base * 2**0.75 * (texts / 32) ** 0.5,
        "epochs": next(epochs for limit, epochs in EPOCHS if rows <= limit),
        "dev_fraction": 0.1,
        "refit": "no",
    }
    if task == "tag":
        return {**settings, "context": 0, "dev_fraction": None}
    return {**settings, "head_init": "random", "pooling": "first", "dropout": 0.1}


def rows_of(task: str, data: Path, rows: int, test_rows: int, draw: int) -> tuple[Any, Any]:
    """Training and test rows; of tags, consecutive sentences, so that they are of whole documents."""
    if task != "tag":
        name = "sst2" if task == "classify" else "mrpc"
        train, test = split(SETS[name](data), {"set": name, "rows": rows, "draw": draw})
        return train, test[:test_rows]
    whole = load_data(data / "conll2003")
    train, dev = whole.train[draw * 2 * rows :][:rows], whole.dev[:test_rows]
    return replace(whole, train=train, dev=dev, fingerprint=fingerprint(train, dev)), None


def run(train: Any, test: Any, settings: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """CPU seconds of a training, and its scores."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        result = regard.train(train, out=Path(folder) / "run", device="cpu", **settings)
        seconds = time.process_time() - began
        scores = result.scores if test is None else regard.evaluate(Path(folder) / "run", test).scores
    return seconds, {name: score.value for name, score in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=list(MAIN), choices=list(MAIN))
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--test-rows", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "defaults_cpu.jsonl")
    options = parser.parse_args()
    for task in options.tasks:
        kinds: dict[str, Callable[[Any], dict[str, Any]]] = {
            "before": lambda train, task=task: before(task, options.rows if task == "tag" else round(0.9 * len(train))),  # type: ignore[misc]
            "now": lambda train: {},
        }
        seconds: dict[str, list[float]] = {name: [] for name in kinds}
        scores: dict[str, list[float]] = {name: [] for name in kinds}
        for draw in range(options.draws):
            train, test = rows_of(task, options.data, options.rows, options.test_rows, draw)
            for name, settings in kinds.items():
                given = {key: value for key, value in settings(train).items() if value is not None}
                took, every = run(train, test, {"seed": draw, **given})
                seconds[name].append(took)
                scores[name].append(every[MAIN[task]])
                line = {"task": task, "rows": options.rows, "draw": draw, "defaults": name}
                line |= {"cpu_seconds": round(took, 1), "score": round(every[MAIN[task]], 4)}
                print(json.dumps(line), flush=True)
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        ratio = sum(seconds["now"]) / sum(seconds["before"])
        table = ", ".join(f"{name} {mean(scores[name]):.4f} in {mean(seconds[name]):.0f} s" for name in kinds)
        print(f"{task}: {table}; {ratio:.2f} times the CPU time", flush=True)


if __name__ == "__main__":
    main()
