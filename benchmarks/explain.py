"""How faithful explanations are: comprehensiveness and sufficiency of every method on SST-2 and IMDB classifiers.

    python benchmarks/explain.py --data ../shared/data --out benchmarks/results
    python benchmarks/explain.py --speed
    python benchmarks/explain.py --sets sst2 --train-rows 4000 --texts 100 --no-limits       # a smaller run

Two classifiers are fine-tuned on each set, one of them with words masked at random (`--explainable`), and every method
explains the predicted class of the same validation texts. The validation texts of SST-2 are whole sentences, whose
parts are removed from the training rows; those of IMDB are reviews of at most 200 words. The script stops if a score of
the decomposition does not add up to the logit within 1e-3, or integrated gradients to the difference within 1 %.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from common import machine
from pretraining import pieces

import regard
from regard.look.dataset.faithfulness import Faithfulness, faithfulness
from regard.predict import Model

WORDS = {"sst2": (10, 60), "imdb": (40, 200)}  # of the texts that are explained, at least and at most
EPOCHS = {"sst2": 2.0, "imdb": 2.0}

Row = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--sets", nargs="+", default=["sst2", "imdb"], choices=["sst2", "imdb"])
    parser.add_argument("--start", default="minilm")
    parser.add_argument("--train-rows", type=int, default=8000)
    parser.add_argument("--test-rows", type=int, default=2000)
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--methods", nargs="+", default=None, help="all if not given")
    parser.add_argument("--no-limits", action="store_true", help="do not search the best and worst order of each text")
    parser.add_argument("--models", type=Path, default=None, help="where the trained models are kept")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--speed", action="store_true", help="only time explanations of one text of 128 tokens")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.speed:
        print(speed(args))
        return
    torch.set_float32_matmul_precision("high")
    for name in args.sets:
        train_rows, test_rows = split(read(args.data, name), name, args)
        for explainable in (False, True):
            model, accuracy = trained(name, train_rows, test_rows, explainable, args)
            if not explainable:
                check_sums(model, test_rows)
            started = time.monotonic()
            result = measured(model, name, test_rows, args)
            line = {"set": name, "explainable": explainable, "accuracy": accuracy, "machine": machine()}
            line |= {"seconds": round(time.monotonic() - started, 1), **result.json()}
            args.out.mkdir(parents=True, exist_ok=True)
            with (args.out / "explain.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(table(line, result), flush=True)


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
    path = data / ("sst2/train.tsv.gz" if name == "sst2" else "imdb/train.csv.gz")
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
        return rows[: args.train_rows], rows[-args.test_rows :]
    words = [tuple(row["text"].split()) for row in rows]
    known = set(words)
    inside = {piece for row in known for piece in pieces(row) if piece != row and piece in known}
    sentences = [number for number, row in enumerate(words) if row not in inside]
    chosen = sentences[: args.test_rows]
    gone = {piece for number in chosen for piece in pieces(words[number])}
    train = [row for number, row in enumerate(rows) if words[number] not in gone]
    return train[: args.train_rows], [rows[number] for number in chosen]


def trained(
    name: str, train_rows: list[Row], test_rows: list[Row], explainable: bool, args: argparse.Namespace
) -> tuple[Model, dict[str, float]]:
    """A classifier and its accuracy with its interval."""
    parent = args.models or Path(tempfile.mkdtemp())
    folder = parent / f"{name}{'-explainable' if explainable else ''}"
    if not folder.exists():
        parent.mkdir(parents=True, exist_ok=True)
        regard.train(
            train_rows,
            out=folder,
            start=args.start,
            epochs=EPOCHS[name],
            explainable=explainable,
            dev_fraction=0.05,
            device=args.device,
        )
    model = regard.load(folder, device=args.device)
    accuracy = asdict(regard.evaluate(model, test_rows).scores["accuracy"])
    if args.models is None:
        shutil.rmtree(parent)
    return model, accuracy


def explained_texts(name: str, rows: list[Row]) -> Iterator[str]:
    least, most = WORDS[name]
    return (row["text"] for row in rows if least <= len(row["text"].split()) <= most)


def check_sums(model: Model, rows: list[Row]) -> None:
    """Stop if scores do not add up."""
    texts = list(explained_texts("sst2", rows))[:5] or [row["text"] for row in rows[:5]]
    for text in texts:
        exact = model.explain(text, method="decomposition")
        path = model.explain(text, method="integrated_gradients")
        assert exact.delta is not None
        assert path.delta is not None
        assert path.baseline_value is not None
        assert abs(exact.delta) < 1e-3, exact.delta
        assert abs(path.delta) < 0.01 * abs(path.value - path.baseline_value) + 1e-4, path.delta


def measured(model: Model, name: str, rows: list[Row], args: argparse.Namespace) -> Faithfulness:
    texts = list(explained_texts(name, rows))[: args.texts]
    started = time.monotonic()

    def progress(event: Any) -> None:
        if event.done % 50 == 0:
            print(f"  {name}: {event.done}/{event.total} {time.monotonic() - started:.0f} s", flush=True)

    return faithfulness(model, texts, args.methods, limits=not args.no_limits, max_rows=None, progress=progress)


def table(line: dict[str, Any], result: Faithfulness) -> str:
    """The scores in Markdown."""
    accuracy = "{value:.3f} ({low:.3f} to {high:.3f})".format(**line["accuracy"])
    kind = "with --explainable" if line["explainable"] else "plain"
    about = f"{result.texts} texts, words erased by {result.erased_by}; {line['machine']}, {line['seconds']:.0f} s"
    lines = [
        f"**{line['set']}, {kind}** — accuracy {accuracy}, {about}",
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
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
