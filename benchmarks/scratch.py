"""IMDB from nothing: the lectures' one-block encoder without and with positions, and a small Transformer.

    python benchmarks/scratch.py --data ../shared/data --out benchmarks/results
    python benchmarks/scratch.py --read-first --data ../shared/data --out benchmarks/results

No weight comes from elsewhere. With --read-first a network guesses hidden words of the reviews first, those without a
label too, and learns the labels then. Scores are on a tenth of the training set, split off with seed 0; nothing of that
tenth is read before.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from sets import SETS

from regard.checkpoint.source import from_preset
from regard.config import AttentionConfig, PoolConfig, PositionConfig
from regard.data.batching.preprocessing import Preprocessing
from regard.device import pick_device
from regard.tasks import task_class
from regard.text.learn import train_tokenizer, train_tokenizer_from_texts
from regard.training.defaults.recipes import DataSize, resolve_settings
from regard.training.engine.loop import fit
from regard.training.load_data import LabeledData, texts_of
from regard.training.pipeline import with_validation
from regard.training.plan import plan_job
from regard.training.pretrain import pretrain
from regard.training.settings import Settings
from regard.training.train import train
from regard.training.validation import RecordValidation

WORDS = 20_000
# Width 256, 2 heads, feed-forward 32, texts of 600, the greatest value of each feature over the text: one block.
LECTURE: dict[str, Any] = {
    "width": 256,
    "layers": 1,
    "ffn_width": 32,
    "attention": AttentionConfig(2),
    "activation": "relu",
    "segments": 0,
    "dropout": 0.5,
    "pool": PoolConfig(pooling="max", activation="tanh"),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "one block, without positions": {**LECTURE, "positions": PositionConfig("none", max_tokens=600)},
    "one block, with positions": {**LECTURE, "positions": PositionConfig("learned", max_tokens=600)},
    "four blocks, pre-norm, rotary": {
        "width": 256,
        "layers": 4,
        "ffn_width": 1024,
        "attention": AttentionConfig(4, dropout=0.1),
        "positions": PositionConfig("rotary", max_tokens=1024),
        "norm_first": True,
        "segments": 0,
        "dropout": 0.3,
        "pool": PoolConfig(pooling="mean", activation="gelu"),
    },
}
SETTINGS: dict[str, dict[str, Any]] = {
    "one block, without positions": {"epochs": 6, "lr": 1e-3, "batch_tokens": 8192},
    "one block, with positions": {"epochs": 6, "lr": 1e-3, "batch_tokens": 8192},
    "four blocks, pre-norm, rotary": {
        "epochs": 10,
        "lr": 5e-4,
        "batch_tokens": 16384,
        "label_smoothing": 0.1,
        "weight_decay": 0.1,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--rows", type=int, default=None, help="only so many, for a look")
    parser.add_argument("--read-first", action="store_true")
    parser.add_argument("--steps", type=int, default=8000, help="of reading, 32,768 tokens each")
    parser.add_argument("--preset", default="bert-small", help="what reads first")
    parser.add_argument("--lr", type=float, default=2e-4, help="of learning labels after it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    data = SETS["imdb"].load(args.data)
    if args.read_first:
        read_first(args, data)
        return
    if args.rows:
        data = replace(data, train=data.train[: args.rows], dev=data.dev[: args.rows])
    words = train_tokenizer_from_texts(texts_of(data.train), kind="wordpiece", size=WORDS)
    device = pick_device()
    lines = []
    for name, shape in NETWORKS.items():
        chosen = Settings.of(SETTINGS[name])
        task = task_class("classify").from_records(data.train, label_smoothing=chosen.label_smoothing or 0.0)
        checkpoint = from_preset("bert-tiny", heads=task.heads, vocabulary=words.size, **shape)
        network = checkpoint.network.to(device)
        preprocessing = Preprocessing(words, checkpoint.config)
        examples = task.examples(data.train, preprocessing, labeled=True)
        chosen = resolve_settings(chosen, DataSize.of(examples.lengths), checkpoint.config, pretrained=False)
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            job = plan_job(network, task, examples, chosen, Path(folder))
            job = with_validation(job, RecordValidation(data.dev, preprocessing))
            done = fit(job)
            assert job.score is not None
            final = job.score()
        parameters = sum(parameter.numel() for parameter in network.parameters())
        line = {
            "network": name,
            "parameters": parameters,
            "accuracy": final.value,
            "low": final.scores[final.main].low,
            "high": final.scores[final.main].high,
            "best_step": done.best_step,
            "steps": done.steps,
            "seconds": time.perf_counter() - began,
        }
        print(json.dumps(line), flush=True)
        lines.append(line)
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "scratch.json").write_text(json.dumps(lines, indent=2))


def read_first(args: argparse.Namespace, data: LabeledData) -> None:
    """Hidden words of all reviews but those scored on, then labels: each seed learns from the same reading."""
    began = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder, more = Path(temporary), args.data / "imdb/unlabeled.txt.gz"
        own = folder / "labeled.txt"
        own.write_text("\n\n".join(" ".join(text.split()) for text in texts_of(data.train)), encoding="utf-8")
        words = train_tokenizer([own, more], kind="wordpiece", size=WORDS)
        text = pretrain(
            [own, more],
            out=folder / "read",
            objective="mlm",
            preset=args.preset,
            tokenizer=words,
            steps=args.steps,
            batch_tokens=32_768,
            window=512,
            lr=7e-4,
            dropout=0.1,
            dev_fraction=0.005,
            eval_every=max(args.steps // 4, 1),
            progress=lambda event: (
                print(event.kind, event.step, event.values, flush=True) if event.kind == "score" else None
            ),
        )
        read = time.perf_counter() - began
        for seed in args.seeds:
            before = time.perf_counter()
            settings = {"epochs": 4, "lr": args.lr, "batch_tokens": 8192, "seed": seed, "overwrite": True}
            result = train(data, out=folder / "tuned", start=folder / "read", **settings)
            line = {
                "network": f"{args.preset}, hidden words first",
                "accuracy": result.scores["accuracy"].value,
                "low": result.scores["accuracy"].low,
                "high": result.scores["accuracy"].high,
                "seed": seed,
                "seconds of reading": read,
                "seconds of labels": time.perf_counter() - before,
                "settings": {**settings, "steps": args.steps},
                "masked_accuracy": text.scores["masked_accuracy"].value,
            }
            print(json.dumps(line), flush=True)
            with (args.out / "scratch-read-first.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
