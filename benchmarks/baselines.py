"""Scores, training time and speed of the baselines beside minilm, on the same rows (see RESULTS.md).

    python benchmarks/baselines.py DATA-FOLDER [imdb sst2 agnews mrpc conll] [--models ngram static probe minilm]

DATA-FOLDER holds imdb, sst2, ag_news, glue/MRPC and conll2003. Whole sentences of SST-2 are held out: phrases of a
sentence are on one side of the split. Results are printed as rows of a table.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from sets import SETS, held_out_sentences

import regard
from regard.data.records import ClassifyRecord, Record
from regard.training.load_data import LabeledData

SENTENCES = 1500  # of SST-2 that are held out
PRESETS = ("ngram", "static", "probe")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=["imdb", "sst2", "agnews", "mrpc", "conll"])
    parser.add_argument("--models", nargs="+", default=["ngram", "static", "probe"])
    parser.add_argument("--rows", type=int, help="training rows, all if not given")
    parser.add_argument("--keep", type=Path, help="folder for the models")
    options = parser.parse_args()
    print(
        "| data | rows | model | score | 95 % interval | training s | texts/s | MB |\n|---|---|---|---|---|---|---|---|"
    )
    for name in options.sets:
        data = split(name, options.data, options.rows)
        for model in options.models:
            with tempfile.TemporaryDirectory() as temporary:
                folder = (options.keep or Path(temporary)) / f"{name}-{model}"
                print(measure(name, model, data, folder), flush=True)


def measure(name: str, model: str, data: LabeledData, folder: Path) -> str:
    """Train, score and time a model; a row of the table."""
    chosen: dict[str, Any] = {"preset": model} if model in PRESETS else {"start": model}
    result = regard.train(data, out=folder, overwrite=True, **chosen)
    main_score = next(iter(result.scores.items()))
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    speed = texts_per_second(folder, data.dev)
    values = f"{main_score[0]} {100 * main_score[1].value:.1f}"
    interval = f"{100 * main_score[1].low:.1f} to {100 * main_score[1].high:.1f}"
    return (
        f"| {name} | {len(data.train):,} | {model} | {values} | {interval} | {result.seconds:.0f} | {speed:,.0f} "
        f"| {size:.0f} |"
    )


def texts_per_second(folder: Path, records: list[Record], seconds: float = 5.0) -> float:
    """How many texts a loaded model answers in a second, after a first call."""
    model = regard.load(folder)
    items: list[Any] = [record.input_texts for record in records]
    items = [item[0] if len(item) == 1 else item for item in items]
    model.predict(items[:64])
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        part = items if done else items[:256]
        model.predict(part)
        done += len(part)
    return done / (time.perf_counter() - started)


def split(name: str, folder: Path, rows: int | None) -> LabeledData:
    """Training and validation rows of a data set: a tenth of the rows, or whole sentences of SST-2."""
    data = SETS[name].load(folder)
    if name == "sst2":
        data = whole_sentences(data)
    return data if rows is None else replace(data, train=data.train[:rows])


def whole_sentences(data: LabeledData) -> LabeledData:
    """SST-2 has phrases of sentences. Some sentences are held out, and their phrases are not trained on."""
    records = [record for record in (*data.train, *data.dev) if isinstance(record, ClassifyRecord)]
    chosen, parts = held_out_sentences([record.text for record in records], SENTENCES, seed=0)
    dev = {record.text: record for record in records if record.text.strip() in chosen}
    train: list[Record] = [record for record in records if record.text not in parts]
    return replace(data, train=train, dev=list(dev.values()), split_off=False)


if __name__ == "__main__":
    main()
