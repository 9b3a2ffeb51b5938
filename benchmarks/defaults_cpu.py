"""CPU seconds and scores of the defaults beside those before the study of defaults.md, on small parts of several sets.

    OMP_NUM_THREADS=1 python benchmarks/defaults_cpu.py --data DATA [--rows 400] [--draws 3] [--test-rows 1000]
    OMP_NUM_THREADS=1 python benchmarks/defaults_cpu.py --data DATA --sets sst2 imdb-150 novels topics-20 --per-class 8

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
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import regard

regard.prepare_process()

from defaults import SETS, split

from regard.training.load_data import fingerprint, load_data

TASKS = {
    "sst2": "classify",
    "agnews": "classify",
    "imdb-150": "classify",
    "novels": "classify",
    "topics-20": "classify",
    "mrpc": "pair",
    "stsb": "pair",
    "conll": "tag",
}
MAIN = ("pearson", "accuracy", "f1")  # the first of these that a set has
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


def rows_of(name: str, data: Path, options: argparse.Namespace, draw: int) -> tuple[Any, Any]:
    """Training and test rows; of tags, consecutive sentences, so that they are of whole documents."""
    rows, test_rows = options.rows, options.test_rows
    if TASKS[name] != "tag":
        size = {"per_class": options.per_class} if options.per_class else {"rows": rows}
        train, test = split(SETS[name](data), {"set": name, "draw": draw, **size})
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
    parser.add_argument("--sets", nargs="+", default=["sst2", "mrpc", "conll"], choices=list(TASKS))
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--per-class", type=int, default=0, help="rows of each class, instead of --rows")
    parser.add_argument("--test-rows", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "defaults_cpu.jsonl")
    options = parser.parse_args()
    for name in options.sets:
        compare(name, options)


def compare(name: str, options: argparse.Namespace) -> None:
    """Train on one set with both settings, draw after draw; every result is printed and written at once."""
    results: dict[str, list[tuple[float, float]]] = {"before": [], "now": []}
    for draw in range(options.draws):
        train, test = rows_of(name, options.data, options, draw)
        rows = options.rows if test is None else len(train)
        old = before(TASKS[name], rows if test is None else round(0.9 * rows))
        for defaults, settings in (("before", old), ("now", {})):
            given = {key: value for key, value in settings.items() if value is not None}
            took, scores = run(train, test, {"seed": draw, **given})
            score = next(scores[key] for key in MAIN if key in scores)
            results[defaults].append((took, score))
            line = {"set": name, "task": TASKS[name], "rows": rows, "draw": draw, "defaults": defaults}
            line |= {"cpu_seconds": round(took, 1), "score": round(score, 4)}
            print(json.dumps(line), flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
    seconds, scores_of = ({key: mean(pair[at] for pair in runs) for key, runs in results.items()} for at in (0, 1))
    table = ", ".join(f"{key} {scores_of[key]:.4f} in {seconds[key]:.0f} s" for key in results)
    print(f"{name}: {table}; {seconds['now'] / seconds['before']:.2f} times the CPU time", flush=True)


if __name__ == "__main__":
    main()
