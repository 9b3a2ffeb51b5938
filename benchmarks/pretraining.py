"""A BERT-tiny pretrained on plain text with hidden words and next sentences, and what that is worth on SST-2.

    python benchmarks/pretraining.py pretrain corpus.txt.xz --tokenizer FOLDER --keep TINY --out benchmarks/results
    python benchmarks/pretraining.py tune --start TINY --data ../shared/data --out benchmarks/results
    python benchmarks/pretraining.py tune --tokenizer FOLDER --data ../shared/data     # from random weights

SST-2's rows are phrases, most of them parts of other rows, so a random split would validate on training text. Here the
validation rows are sentences that are no part of another row, and their parts are removed from the training rows.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sets import SETS, texts

from regard.data.records import Record
from regard.training.load_data import LabeledData
from regard.training.pretrain import pretrain
from regard.training.train import train

SEEDS = 3
TUNE: dict[int | None, dict[str, Any]] = {None: {"epochs": 3, "batch_tokens": 832}, 2000: {"epochs": 10, "batch": 32}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["pretrain", "tune"])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--tokenizer", default=None)
    parser.add_argument("--keep", type=Path, default=None, help="where the pretrained model goes")
    parser.add_argument("--start", type=Path, default=None, help="model to fine-tune; random weights if not given")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--batch-tokens", type=int, default=32_768)
    parser.add_argument(
        "--labels", type=int, default=None, choices=[2000], help="number of training rows; all if not given"
    )
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    if args.part == "pretrain":
        pretrained(args)
    else:
        tuned(args)


def pretrained(args: argparse.Namespace) -> None:
    """The tiny model, its curves and its scores on validation articles."""
    began = time.perf_counter()

    def on_event(event: Any) -> None:
        if event.kind != "log" or event.step % 1000 == 0:
            print(f"{time.perf_counter() - began:.0f} s", event.kind, event.step, event.values, flush=True)

    result = pretrain(
        args.files,
        out=args.keep,
        objective="mlm+nsp",
        preset="bert-tiny",
        tokenizer=args.tokenizer,
        steps=args.steps,
        batch_tokens=args.batch_tokens,
        window=128,
        lr=1e-3,
        dev_fraction=0.01,
        eval_every=max(args.steps // 8, 1),
        log_every=50,
        dropout=0.0,
        progress=on_event,
    )
    for name in ("curves.png", "metrics.jsonl"):
        shutil.copy(args.keep / name, args.out / f"pretrain-{name}")
    text = {**result.json(), "folder": args.keep.name}
    write(args.out, {"pretrain": text, "minutes": (time.perf_counter() - began) / 60})


def tuned(args: argparse.Namespace) -> None:
    """Accuracy on the validation sentences of SST-2, once per seed."""
    data = whole_sentences(SETS["sst2"].load(args.data))
    if args.labels is not None:
        data = replace(data, train=random.Random(0).sample(list(data.train), args.labels))
    start = {"start": args.start} if args.start else {"preset": "bert-tiny", "tokenizer": args.tokenizer}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(SEEDS):
            settings = {**TUNE[args.labels], "lr": args.lr, "seed": seed, "overwrite": True}
            run = train(data, out=Path(folder) / "tuned", **settings, **start)
            line = {"start": "pretrained" if args.start else "random", "rows": len(data.train), "dev": len(data.dev)}
            write(args.out, {**line, "lr": args.lr, "seed": seed, "accuracy": run.scores["accuracy"].value})


def whole_sentences(data: LabeledData, *, fraction: float = 0.2, seed: int = 0) -> LabeledData:
    """A new split of the rows: a fraction of the whole sentences for validation, without their parts in training."""
    records: list[Record] = [*data.train, *data.dev]
    rows = [tuple(texts(record)[0].split()) for record in records]
    known = set(rows)
    inside = {piece for row in known for piece in pieces(row) if piece != row and piece in known}
    sentences = [number for number, row in enumerate(rows) if row not in inside]
    chosen = set(random.Random(seed).sample(sentences, int(fraction * len(sentences))))
    gone = {piece for number in chosen for piece in pieces(rows[number])}
    return replace(
        data,
        train=[record for number, record in enumerate(records) if rows[number] not in gone],
        dev=[records[number] for number in sorted(chosen)],
    )


def pieces(row: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every stretch of words of a row, itself among them."""
    for start in range(len(row)):
        for end in range(start + 1, len(row) + 1):
            yield tuple(row[start:end])


def write(out: Path, line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
    with (out / "pretraining.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
