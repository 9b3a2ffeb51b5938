"""How often are two trainings of one model called different? Independent pairs of real trainings on AG News.

Every pair has its own training and test rows, drawn from the whole file, and two (or more) trainings of a network with
one hidden layer on the same training rows, with other seeds. Its vectors are n-gram counts, reduced to 128 numbers. The
other rows of the file, up to 20,000, tell what the true difference of two trained models is.

    python benchmarks/equal_models.py ../shared/data/ag_news/train.csv.gz --pairs 200 --seeds 1
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from pathlib import Path

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from regard.metrics.label_meters import LabelMeter
from regard.metrics.paired.rows import RowTable
from regard.metrics.paired.significance import compare_pair

TRAIN, TEST, WIDTH = 1500, 1500, 128
NAMES = ("1", "2", "3", "4")
METRICS = ("accuracy", "macro_f1")


def vectors(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = HashingVectorizer(n_features=2**16, ngram_range=(1, 2), alternate_sign=False).transform(
        row["text"] for row in rows
    )
    reduced = TruncatedSVD(WIDTH, random_state=0).fit_transform(TfidfTransformer().fit_transform(counts))
    labels = np.array([int(row["label"]) - 1 for row in rows])
    return (reduced / reduced.std(0)).astype(np.float32), labels


def trained(x: torch.Tensor, y: torch.Tensor, seed: int, epochs: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, len(NAMES)))
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    return network


def table(predicted: np.ndarray, gold: np.ndarray) -> RowTable:
    meter = LabelMeter(NAMES)
    meter.keep_rows()
    meter.add_many(predicted, gold)
    return meter.row_table()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each of the two models")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--resamples", type=int, default=4000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    x, y = vectors(arguments.data)
    tensor, target = torch.from_numpy(x), torch.from_numpy(y)
    names = ("all", "bootstrap", "randomization", "mcnemar", "all, with the assumed variance between seeds")
    different = {name: dict.fromkeys(names, 0) for name in METRICS}
    gaps, errors, seeds = [], [], 2 * arguments.seeds
    for pair in range(arguments.pairs):
        order = np.random.default_rng(pair).permutation(len(y))
        rows, test, rest = order[:TRAIN], order[TRAIN : TRAIN + TEST], order[TRAIN + TEST :][:20_000]
        predicted = []
        for seed in range(seeds):
            network = trained(tensor[rows], target[rows], 1000 * pair + seed, arguments.epochs)
            with torch.no_grad():
                predicted.append(network(tensor).argmax(1).numpy())
        tables = [table(one[test], y[test]) for one in predicted]
        halves = tables[: arguments.seeds], tables[arguments.seeds :]
        true = [float((one[rest] == y[rest]).mean()) for one in predicted]
        gaps.append(np.mean(true[: arguments.seeds]) - np.mean(true[arguments.seeds :]))
        for name in METRICS:
            result = compare_pair(*halves, name, resamples=arguments.resamples, seed=pair)
            counts = different[name]
            counts["all"] += result.p < 0.05
            counts["bootstrap"] += result.p_bootstrap < 0.05
            counts["randomization"] += (result.p_randomization or 1) < 0.05
            counts["mcnemar"] += (result.p_mcnemar or 1) < 0.05
            if arguments.seeds == 1:
                counted = compare_pair(*halves, name, resamples=arguments.resamples, seed=pair, varying=2)
                counts[names[-1]] += counted.p < 0.05
            errors += [result.error] if name == "accuracy" else []
    report = {
        "pairs": arguments.pairs,
        "seeds": arguments.seeds,
        "accuracy": round(float(np.mean(true)), 4),
        "percent called different": {
            name: {test: round(100 * count / arguments.pairs, 1) for test, count in counts.items()}
            for name, counts in different.items()
        },
        "points": {
            "true difference, standard deviation": round(100 * float(np.std(gaps)), 3),
            "standard error from the choice of test rows": round(100 * float(np.mean(errors)), 3),
        },
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
