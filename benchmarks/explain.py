"""How faithful explanations are: comprehensiveness and sufficiency of every method on SST-2 and IMDB classifiers.

    python benchmarks/explain.py --data ../shared/data --out benchmarks/results
    python benchmarks/explain.py --data FOLDER --out OUT --start minilm --workers 10 --minutes 8    # on a GPU with MPS
    python benchmarks/explain.py --sets sst2 --train-rows 2000 --test-rows 500 --texts 20 --seeds 1 # a small run
    python benchmarks/explain.py --texts 0 --seeds 8 --masked 0.25 --sets sst2     # only what --explainable costs
    python benchmarks/explain.py --speed

Classifiers are fine-tuned on each set with several seeds, once as usual and once with words masked at random
(`--explainable`): the difference of their accuracies is its cost. Every method explains the predicted class of the same
validation texts with the models of the first seed. FOLDER holds `sst2/train.tsv.gz` or `sst2.tsv.gz`, and
`imdb/train.csv.gz` or `imdb.csv.gz`. The validation texts of SST-2 are whole sentences, whose parts are removed from
the training rows; those of IMDB that are explained have at most 200 words. Results are written as they come:
`explain.jsonl` has the accuracy of every model and the scores of every text, `explain.md` the tables so far. The script
fails at its end if a score of the decomposition does not add up to the logit within 1e-3, or integrated gradients to
the difference within 1 %.
"""

from __future__ import annotations

import argparse
import csv
import gc
import gzip
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from common import machine
from pretraining import pieces

import regard
from regard.data.batching import masked_words
from regard.data.batching.masked_words import MASKED_FRACTION
from regard.look.dataset.faithfulness import TextScores, measure, summarize
from regard.look.explain.explain import make_scorer
from regard.look.explain.methods import methods_for
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.scorer import for_equal_lengths
from regard.metrics.confidence import bootstrap
from regard.predict import Model

FILES = {"sst2": ("sst2/train.tsv.gz", "sst2.tsv.gz"), "imdb": ("imdb/train.csv.gz", "imdb.csv.gz")}
WORDS = {"sst2": (10, 60), "imdb": (40, 200)}  # of the texts that are explained, at least and at most
PART = {"sst2": 50, "imdb": 20}  # texts that a process explains at a time

Row = dict[str, str]


class Kind(NamedTuple):
    """A data set and how a model is trained on it."""

    set: str
    explainable: bool

    @property
    def name(self) -> str:
        return f"{self.set}-explainable" if self.explainable else self.set


class Trained(NamedTuple):
    """A model that was trained: which of the validation rows it predicts correctly."""

    kind: Kind
    seed: int
    correct: list[int]
    sums: tuple[float, float] | None  # see check_sums
    seconds: float


class Explained(NamedTuple):
    """The scores of some texts."""

    kind: Kind
    texts: list[TextScores]
    seconds: float


@dataclass
class Results:
    """What is known so far."""

    correct: dict[Kind, list[list[int]]] = field(default_factory=lambda: defaultdict(list))
    texts: dict[Kind, list[TextScores]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, line: Trained | Explained) -> None:
        self.seconds[line.kind] += line.seconds
        if isinstance(line, Trained):
            self.correct[line.kind].append(line.correct)
        else:
            self.texts[line.kind] += line.texts


def main() -> None:
    args = arguments()
    warnings.simplefilter("ignore")
    if args.speed:
        print(speed(args))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        args.models = args.models or Path(folder)
        args.models.mkdir(parents=True, exist_ok=True)
        for name in args.sets:
            train_rows, test_rows = split(read(args.data, name), name, args)
            rows = {"train": train_rows, "test": test_rows}
            (args.models / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
        run(args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--sets", nargs="+", default=["sst2", "imdb"], choices=["sst2", "imdb"])
    parser.add_argument("--start", default="minilm")
    parser.add_argument("--train-rows", type=int, default=15_000, help="at most")
    parser.add_argument(
        "--test-rows", type=int, default=3_000, help="for the accuracy of SST-2; thrice as many of IMDB"
    )
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--masked", type=float, default=MASKED_FRACTION, help="fraction of the texts with masked words in --explainable"
    )
    parser.add_argument("--epochs", type=float, default=None, help="chosen from the size of the data if not given")
    parser.add_argument("--methods", nargs="+", default=None, help="all if not given")
    parser.add_argument("--no-limits", action="store_true", help="do not search the best and worst order of each text")
    parser.add_argument("--models", type=Path, default=None, help="where the trained models are kept")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--minutes", type=float, default=None, help="start nothing after this time")
    parser.add_argument("--speed", action="store_true", help="only time explanations of one text of 128 tokens")
    return parser.parse_args()


def run(args: argparse.Namespace) -> None:
    """Train and explain in several processes. Texts of all models take turns, so that an early end cuts all alike."""
    started = time.monotonic()
    results, failures = Results(), 0
    kinds = [Kind(name, explainable) for name in sorted(args.sets) for explainable in (False, True)]
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: set[Future[Any]] = {
            pool.submit(trained, kind, seed, args) for seed in range(args.seeds) for kind in kinds
        }
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for job in done:
                if job.cancelled():
                    continue
                try:
                    line = job.result()
                except Exception:
                    failures += 1
                    print(traceback.format_exc(), file=sys.stderr, flush=True)
                    continue
                failures += isinstance(line, Trained) and line.sums is not None and not adds_up(line.sums)
                results.add(line)
                write(line, results, args)
                if isinstance(line, Trained) and line.seed == 0:
                    parts = range(0, args.texts, PART[line.kind.set])
                    waiting |= {pool.submit(explained, line.kind, first, args) for first in parts}
            if args.minutes is not None and time.monotonic() - started > 60 * args.minutes:
                waiting = {job for job in waiting if not job.cancel()}
    print(f"{time.monotonic() - started:.0f} s in all, {failures} failures")
    sys.exit(1 if failures else 0)


def adds_up(sums: tuple[float, float]) -> bool:
    """Whether the scores of the exact methods are within their limits: 1e-3, and 1 %."""
    if sums[0] < 1e-3 and sums[1] < 0.01:
        return True
    print(f"scores do not add up: {sums}", file=sys.stderr, flush=True)
    return False


def read_rows(name: str, args: argparse.Namespace) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = json.loads((args.models / f"{name}.json").read_text(encoding="utf-8"))
    return rows


def trained(kind: Kind, seed: int, args: argparse.Namespace) -> Trained:
    """Train a classifier and predict the validation rows, in a process of its own."""
    warnings.simplefilter("ignore")
    if args.workers > 1:
        torch.set_num_threads(1)
    masked_words.MASKED_FRACTION = args.masked
    started = time.monotonic()
    rows, folder = read_rows(kind.set, args), args.models / f"{kind.name}-{seed}"
    if not folder.exists():
        regard.train(
            rows["train"],
            out=folder,
            start=args.start,
            epochs=args.epochs,
            explainable=kind.explainable,
            dev_fraction=0.05,
            seed=seed,
            device=args.device,
            compile="no",
        )
    model = regard.load(folder, device=args.device)
    sums = check_sums(model, rows["test"]) if seed == 0 else None
    predicted = model.predict([row["text"] for row in rows["test"]])
    correct = [int(one.label == row["label"]) for one, row in zip(predicted, rows["test"], strict=True)]
    release_memory()
    return Trained(kind, seed, correct, sums, time.monotonic() - started)


def release_memory() -> None:
    """Let the other processes have the memory of the GPU that this one does not use."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def check_sums(model: Model, rows: list[Row]) -> tuple[float, float]:
    """How much of the logit the decomposition misses, and of its change integrated gradients do, at most."""
    exact, path = [], []
    for text in list(explained_texts("sst2", rows))[:5]:
        one = model.explain(text, method="decomposition")
        exact.append(abs(one.delta or 0.0))
        one = model.explain(text, method="integrated_gradients")
        path.append(abs(one.delta or 0.0) / max(abs(one.value - (one.baseline_value or 0.0)), 0.01))
    return max(exact, default=0.0), max(path, default=0.0)


@cache
def loaded(folder: Path, device: str) -> Model:
    return regard.load(folder, device=device)


def explained(kind: Kind, first: int, args: argparse.Namespace) -> Explained:
    """The scores of every method on some texts, with the model of the first seed."""
    warnings.simplefilter("ignore")
    torch.set_float32_matmul_precision("high")
    started = time.monotonic()
    model = loaded(args.models / f"{kind.name}-0", args.device)
    texts = list(explained_texts(kind.set, read_rows(kind.set, args)["test"]))[: args.texts]
    methods = [name for name in args.methods or methods_for(model.network) if name != "random"]
    with for_equal_lengths(model.network):
        scores = [
            measure(make_scorer(model, text), methods, MethodOptions(), limits=not args.no_limits)
            for text in texts[first : first + PART[kind.set]]
        ]
    torch.set_float32_matmul_precision("highest")
    release_memory()
    return Explained(kind, scores, time.monotonic() - started)


def explained_texts(name: str, rows: list[Row]) -> Iterator[str]:
    least, most = WORDS[name]
    return (row["text"] for row in rows if least <= len(row["text"].split()) <= most)


def write(line: Trained | Explained, results: Results, args: argparse.Namespace) -> None:
    """Append a result to `explain.jsonl` and write the tables of all so far."""
    values: dict[str, Any] = {"set": line.kind.set, "explainable": line.kind.explainable, "seconds": line.seconds}
    if isinstance(line, Trained):
        accuracy = statistics.mean(line.correct)
        values |= {"seed": line.seed, "accuracy": accuracy, "rows": len(line.correct), "sums": line.sums}
        values |= {"masked": args.masked} if line.kind.explainable else {}
        print(f"{line.kind.name}, seed {line.seed}: accuracy {accuracy:.4f}, {line.seconds:.0f} s", flush=True)
    else:
        values |= {"texts": [asdict(one) for one in line.texts]}
        print(f"{line.kind.name}: {len(results.texts[line.kind])} texts", flush=True)
    with (args.out / "explain.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")
    parts = [costs(results), *(table(kind, results) for kind in sorted(results.texts))]
    (args.out / "explain.md").write_text("\n\n".join([machine(), *parts]) + "\n", encoding="utf-8")


def costs(results: Results) -> str:
    """The accuracies of all seeds, and the cost of `--explainable` with its interval over validation rows."""
    lines = ["| set | seeds | rows | plain | `--explainable` | cost in points |", "|---|---|---|---|---|---|"]
    for plain in (kind for kind in sorted(results.correct) if not kind.explainable):
        both = [np.array(results.correct[kind], float) for kind in (plain, Kind(plain.set, True))]
        if not all(map(len, both)):
            continue
        both = [correct[: min(map(len, both))] for correct in both]  # the same number of seeds
        means = [" ".join(f"{100 * one:.2f}" for one in correct.mean(1)) for correct in both]
        cost = bootstrap(100 * (both[0].mean(0) - both[1].mean(0)))
        seeds, rows = both[0].shape
        about = f"{cost.value:+.2f} ({cost.low:+.2f} to {cost.high:+.2f})"
        lines.append(f"| {plain.set} | {seeds} | {rows} | {means[0]} | {means[1]} | {about} |")
    return "\n".join(lines)


def table(kind: Kind, results: Results) -> str:
    """The scores in Markdown."""
    result = summarize(results.texts[kind], "mask")
    trained_with = "with --explainable" if kind.explainable else "plain"
    lines = [
        f"**{kind.set}, {trained_with}**: {result.texts} texts, {results.seconds[kind]:.0f} s of all processes",
        "",
        "| method | comprehensiveness | sufficiency | normalized |",
        "|---|---|---|---|",
    ]
    for one in result.methods:
        scores = (one.comprehensiveness, one.sufficiency, one.normalized)
        cells = [
            "" if score is None else f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})" for score in scores
        ]
        lines.append(f"| {' | '.join([one.method, *cells])} |")
    return "\n".join(lines)


def speed(args: argparse.Namespace) -> str:
    """Seconds of each method on one text of 128 tokens: how similar it is to a second one."""
    model = regard.load(args.start, device=args.device)
    text = "the cook who burned the soup opened a window and " * 12 + "left the house very late."
    lines = [f"one text of 128 tokens; {machine()}", "", "| method | seconds | CPU seconds |", "|---|---|---|"]
    for method in ("decomposition", "occlusion", "integrated_gradients", "attention_rollout"):
        times = []
        for _ in range(3):
            started, used = time.monotonic(), time.process_time()
            explanation = model.explain(text, "a dog lay on the rug", method=method)
            times.append((time.monotonic() - started, time.process_time() - used))
        assert len(explanation.tokens) == 128, len(explanation.tokens)
        wall, cpu = (min(column) for column in zip(*times[1:], strict=True))
        lines.append(f"| {method} | {wall:.2f} | {cpu:.2f} |")
    return "\n".join(lines)


def read(data: Path, name: str) -> list[Row]:
    path = next((data / file for file in FILES[name] if (data / file).exists()), None)
    if path is None:
        sys.exit(f"{data} has neither {' nor '.join(FILES[name])}.")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        options: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if name == "sst2" else {}
        rows = csv.DictReader(file, **options)
        label = {"0": "negative", "1": "positive", "neg": "negative", "pos": "positive"}
        return [
            {
                "text": (row.get("sentence") or row.get("text") or "").strip(),
                "label": label.get(row["label"], row["label"]),
            }
            for row in rows
        ]


def split(rows: list[Row], name: str, args: argparse.Namespace) -> tuple[list[Row], list[Row]]:
    """Training and validation rows without a common part."""
    random.Random(0).shuffle(rows)
    if name == "imdb":
        return rows[: args.train_rows], rows[args.train_rows :][-3 * args.test_rows :]
    words = [tuple(row["text"].split()) for row in rows]
    known = set(words)
    inside = {piece for row in known for piece in pieces(row) if piece != row and piece in known}
    sentences = [number for number, row in enumerate(words) if row not in inside]
    chosen = sentences[: args.test_rows]
    gone = {piece for number in chosen for piece in pieces(words[number])}
    train = [row for number, row in enumerate(rows) if words[number] not in gone]
    return train[: args.train_rows], [rows[number] for number in chosen]


if __name__ == "__main__":
    main()
