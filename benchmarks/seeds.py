"""Whether the mean of the weights of several seeds is better than one: small sets, test rows split off.

    python benchmarks/seeds.py --data DATA [--sets rte mrpc cola sst2] [--rows 1000] [--seeds 5] [--draws 3]

For each set and draw of training rows, the default settings are trained with every seed, from the same initial weights,
on all training rows (no validation rows). Printed as it goes: the test score of each seed, of the mean of the first 3
and of all, and of the probabilities of all averaged, which would cost as many networks. Sets, splits and draws are
those of defaults.py; sst2 has `--rows` training rows, the others all of theirs (or `--rows`, if it is given for all
with `--all-rows no`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from defaults import SETS, Rows, split

import regard
from regard.tasks.classify import LabelAnswer
from regard.training.head_init.mean_weights import MeanWeights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["rte", "mrpc", "cola", "sst2"], choices=list(SETS))
    parser.add_argument("--rows", type=int, default=1000, help="training rows of sst2")
    parser.add_argument("--all-rows", choices=["yes", "no"], default="yes", help="all rows of the other sets")
    parser.add_argument("--test-rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--settings", type=json.loads, default={}, help="settings of regard.train, as JSON")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "seeds.jsonl")
    options = parser.parse_args()
    for name in options.sets:
        every = name != "sst2" and options.all_rows == "yes"
        for draw in range(options.draws):
            job = {"rows": 10**9 if every else options.rows, "draw": draw}
            train, test = split(SETS[name](options.data), job)
            result = compare(train, test[: options.test_rows], options.seeds, options.settings, first=100 * draw)
            line = json.dumps({"set": name, "rows": len(train), "test_rows": len(test), "draw": draw, **result})
            print(line, flush=True)
            with options.out.open("a") as file:
                file.write(line + "\n")


def compare(train: Rows, test: Rows, seeds: int, settings: dict[str, Any], *, first: int) -> dict[str, Any]:
    """The test scores of each seed, of means of weights, and of averaged probabilities."""
    shared: dict[str, Any] = {"dev_fraction": 0.0, **settings}
    scores: dict[str, Any] = {"seeds": [], "seconds": []}
    chances: list[dict[str, float]] = [{} for _ in test]
    texts = [(row["first"], row["second"]) if "first" in row else row["text"] for row in test]
    with tempfile.TemporaryDirectory() as root:
        folders = [Path(root) / str(seed) for seed in range(seeds)]
        for number, folder in enumerate(folders):
            began = time.process_time()
            regard.train(train, out=folder, seed=first + number, initial_seed=first, **shared)
            scores["seconds"].append(round(time.process_time() - began, 1))
            scores["seeds"].append(score(folder, test))
            print(f"  seed {number}: {scores['seeds'][-1]}, {scores['seconds'][-1]} s of CPU time", flush=True)
            for total, answer in zip(chances, regard.load(folder).predict(texts), strict=True):
                assert isinstance(answer, LabelAnswer)
                for label, chance in (answer.scores or {}).items():
                    total[label] = total.get(label, 0.0) + chance
        for count in sorted({min(3, seeds), seeds}):
            folder = Path(root) / f"mean-{count}"
            regard.train(train, out=folder, seed=first, mean=MeanWeights(folders[:count]), **shared)
            scores[f"mean of {count}"] = score(folder, test)
            print(f"  mean of {count}: {scores[f'mean of {count}']}", flush=True)
    right = [max(total, key=total.__getitem__) == row["label"] for total, row in zip(chances, test, strict=True)]
    scores["averaged probabilities, accuracy"] = round(sum(right) / len(right), 4)
    return scores


def score(folder: Path, test: Rows) -> dict[str, float]:
    scores = regard.evaluate(folder, test).scores
    return {name: round(scores[name].value, 4) for name in ("accuracy", "mcc") if name in scores}


if __name__ == "__main__":
    main()
