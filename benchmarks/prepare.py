"""CPU seconds before the first step of a training: importing, reading the data, making sequences of it.

    OMP_NUM_THREADS=1 python benchmarks/prepare.py --data DATA [--sets rte conll sst2 imdb squad]

CPU time of all threads of this process, so other work on the machine matters little.
"""

from __future__ import annotations

import time

STARTED = time.process_time()

import argparse  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TypeVar  # noqa: E402

from sets import SETS  # noqa: E402

from regard.checkpoint.folder import read_folder  # noqa: E402
from regard.checkpoint.source import minilm_folder  # noqa: E402
from regard.data.batching.preprocessing import Preprocessing  # noqa: E402
from regard.tasks import task_class  # noqa: E402
from regard.text.tokenizer import Tokenizer  # noqa: E402
from regard.training.load_data import load_data  # noqa: E402

IMPORTED = time.process_time()
Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    began = time.process_time()
    return work(), time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["rte", "conll", "sst2", "imdb", "squad"], choices=list(SETS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    config = read_folder(minilm_folder(), weights=False).config
    print(f"imports {IMPORTED - STARTED:.2f}")
    for name in options.sets:
        tokenizer = Tokenizer.load(minilm_folder())  # its cache of words is empty
        path = options.data / SETS[name].path
        data, reading = timed(lambda: load_data(path, columns=SETS[name].read.get("columns")))  # noqa: B023
        task = task_class(data.task).from_records([*data.train, *data.dev])
        preprocessing = Preprocessing(tokenizer, config)
        examples, making = timed(lambda: task.examples(data.train, preprocessing, labeled=True))  # noqa: B023
        size = f"{len(data.train):,} rows, {len(examples.ids):,} tokens"
        print(f"{name}: reading {reading:.2f}, making sequences {making:.2f} ({size})", flush=True)


if __name__ == "__main__":
    main()
