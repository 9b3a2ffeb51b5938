"""IMDB from nothing: the lectures' one-block encoder without and with positions, and a small Transformer.

    python benchmarks/scratch.py --data ../shared/data --out benchmarks/results

No weight is pretrained. Scores are on a tenth of the training set, split off with seed 0.
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
from regard.device import pick_device
from regard.tasks import task_class
from regard.tasks.task import Reading
from regard.text.learn import learn_from
from regard.training.gather import texts_of
from regard.training.loop import fit
from regard.training.plan import plan_job
from regard.training.run import with_score
from regard.training.settings import Settings
from regard.training.start import Size, resolved

WORDS = 20_000
# Width 256, 2 heads, feed-forward 32, texts of 600, the greatest value of each feature over the text: one block.
LECTURE: dict[str, Any] = {
    "width": 256,
    "layers": 1,
    "inner": 32,
    "attention": AttentionConfig(2),
    "activation": "relu",
    "segments": 0,
    "dropout": 0.5,
    "pool": PoolConfig(how="max", activation="tanh"),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "one block, without positions": {**LECTURE, "positions": PositionConfig("none", longest=600)},
    "one block, with positions": {**LECTURE, "positions": PositionConfig("learned", longest=600)},
    "four blocks, pre-norm, rotary": {
        "width": 256,
        "layers": 4,
        "inner": 1024,
        "attention": AttentionConfig(4, dropout=0.1),
        "positions": PositionConfig("rotary", longest=1024),
        "norm_first": True,
        "segments": 0,
        "dropout": 0.3,
        "pool": PoolConfig(how="mean", activation="gelu"),
    },
}
SETTINGS: dict[str, dict[str, Any]] = {
    "one block, without positions": {"epochs": 6, "lr": 1e-3, "batch_tokens": 8192},
    "one block, with positions": {"epochs": 6, "lr": 1e-3, "batch_tokens": 8192},
    "four blocks, pre-norm, rotary": {"epochs": 10, "lr": 5e-4, "batch_tokens": 16384, "smoothing": 0.1, "decay": 0.1},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--rows", type=int, default=None, help="only so many, for a look")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    data = SETS["imdb"].gather(given.data)
    if given.rows:
        data = replace(data, train=data.train[: given.rows], dev=data.dev[: given.rows])
    words = learn_from(texts_of(data.train), kind="wordpiece", size=WORDS)
    device = pick_device()
    lines = []
    for name, shape in NETWORKS.items():
        chosen = Settings.of(SETTINGS[name])
        task = task_class("classify").learn(data.train, smoothing=chosen.smoothing or 0.0)
        checkpoint = from_preset("bert-tiny", heads=task.heads, vocabulary=words.size, **shape)
        network = checkpoint.network.to(device)
        reading = Reading(words, checkpoint.config)
        examples = task.examples(data.train, reading, labelled=True)
        chosen = resolved(chosen, Size.of(examples.lengths), checkpoint.config, pretrained=False, gpu=True)
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            job = with_score(plan_job(network, task, examples, chosen, Path(folder)), data, reading)
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
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "scratch.json").write_text(json.dumps(lines, indent=2))


if __name__ == "__main__":
    main()
