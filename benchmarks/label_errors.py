"""Likely label errors and calibration of a classifier that was trained elsewhere, on held-out rows of its set.

    python benchmarks/label_errors.py MODEL sst2 DATA-FOLDER [--flips 50]

The test rows are those of compress.py: half of the held-out rows, which chose nothing; for label errors the validation
half is used as well. 3 % of the labels are flipped at random, and the share of the flips among the first 5 % that are
listed is reported (mean and 90 % range of all draws). Calibration: the expected error with a temperature, without it,
and of labels drawn from the model's own probabilities, which is what chance adds. The temperature is fitted again on
the validation half: rounding the weights, as packed.py does, makes a model less certain.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from compress import held_out

import regard
from regard.data.records import ClassifyRecord
from regard.metrics.calibration import CalibrationCounts, fit_temperature
from regard.report.label_errors import rank_label_errors

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def answers(model: Any, records: list[Any]) -> tuple[Floats, Labels]:
    """Probabilities of the classes, and the numbers of the labels."""
    rows = [record for record in records if isinstance(record, ClassifyRecord)]
    predicted = model.predict([record.text for record in rows])
    names = list(predicted[0].scores)
    chances = np.array([[answer.scores[name] for name in names] for answer in predicted])
    return chances, np.array([names.index(str(record.label)) for record in rows])


def share_found(chances: Floats, labels: Labels, generator: np.random.Generator) -> float:
    """The share of random flips among the first 5 % listed."""
    rows, classes = chances.shape
    flipped = generator.choice(rows, round(0.03 * rows), replace=False)
    changed = labels.copy()
    changed[flipped] = (changed[flipped] + generator.integers(1, classes, len(flipped))) % classes
    listed = rank_label_errors(chances, changed).order[: round(0.05 * rows)]
    return len(set(listed.tolist()) & set(flipped.tolist())) / len(flipped)


def calibration_error(chances: Floats, labels: Labels) -> float:
    counter = CalibrationCounts()
    for row, label in zip(chances, labels, strict=True):
        counter.add(float(row.max()), bool(row.argmax() == label))
    result = counter.result()
    assert result is not None
    return result.error


def with_temperature(chances: Floats, temperature: float) -> Floats:
    """Probabilities of the logits divided by `temperature`. The answers are rounded to four digits."""
    logits = np.log(np.clip(chances, 5e-5, 1)) / temperature
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True), np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("set", choices=["sst2", "agnews", "imdb"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--flips", type=int, default=50, help="draws of random flips")
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    model = regard.load(options.model, engine=options.engine)
    rows = held_out(options.set, options.data)
    chances, labels = answers(model, [*rows.labeled.dev, *rows.test])
    test = slice(len(rows.labeled.dev), None)
    generator = np.random.default_rng(0)
    found = [share_found(chances, labels, generator) for _ in range(options.flips)]
    stored = json.loads((options.model / "run.json").read_text())["task_settings"]["temperature"]
    plain = with_temperature(chances, 1 / stored)
    temperature = fit_temperature(np.log(plain[: test.start]), labels[: test.start])
    chances = with_temperature(plain, temperature)
    drawn = [np.array([generator.choice(len(row), p=row / row.sum()) for row in chances[test]]) for _ in range(20)]
    result = {
        "set": options.set,
        "rows": len(labels),
        "accuracy": float(np.mean(chances.argmax(1) == labels)),
        "flips_found": float(np.mean(found)),
        "range": np.percentile(found, [5, 95]).tolist(),
        "temperature": temperature,
        "calibration_error": calibration_error(chances[test], labels[test]),
        "without_temperature": calibration_error(plain[test], labels[test]),
        "of_chance": float(np.mean([calibration_error(chances[test], one) for one in drawn])),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
