"""Sentence vectors, regard and sentence-transformers in one run, the same weights in both.

    python benchmarks/embed.py                 # minilm on the CPU; needs `pip install sentence-transformers`

Both get texts. sentence-transformers sorts them by length, so its batches have little padding: it is the peer at its
best, unlike a padded batch of unsorted texts (benchmarks/forward.py).
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import regard

regard.prepare_process()

import numpy as np
import torch
from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found]  # not a dependency

from regard import samples
from regard.checkpoint.source import minilm_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "embed.json")
    args = parser.parse_args()
    ours = regard.load("minilm", device=args.device)
    theirs = SentenceTransformer(str(minilm_folder()), device=args.device)
    rows = []
    for name, texts in cases().items():
        rows.append(compare(name, texts, ours, theirs, rounds=args.rounds))
        print(json.dumps(rows[-1]), flush=True)
    machine = {"machine": platform.machine(), "torch": torch.__version__, "threads": torch.get_num_threads()}
    args.out.write_text(json.dumps({**machine, "device": args.device, "rows": rows}, indent=1) + "\n")


def cases() -> dict[str, list[str]]:
    """Short texts, long texts, and both mixed, made of the words of a sample."""
    words = " ".join(samples.path("messages").read_text().split(",")).split()
    rng = random.Random(0)

    def text(length: int) -> str:
        start = rng.randrange(len(words) - length)
        return " ".join(words[start : start + length])

    short = [text(max(3, int(rng.lognormvariate(2.7, 0.5)))) for _ in range(256)]
    mixed = [text(min(150, max(3, int(rng.lognormvariate(4.0, 0.9))))) for _ in range(128)]
    return {"short (mean 17 words)": short, "mixed (3 to 150 words)": mixed}


def compare(name: str, texts: list[str], ours: Any, theirs: Any, *, rounds: int) -> dict[str, Any]:
    """Median texts per second of both, in turns; their vectors must agree."""
    calls: dict[str, Callable[[], Any]] = {
        "regard": lambda: ours.embed(texts, normalize=True),
        "sentence-transformers": lambda: theirs.encode(texts, normalize_embeddings=True, batch_size=32),
    }
    apart = float(np.abs(calls["regard"]() - calls["sentence-transformers"]()).max())
    assert apart < 1e-4, apart
    seconds: dict[str, list[float]] = {call: [] for call in calls}
    for _ in range(rounds):
        for call, run in calls.items():
            began = time.perf_counter()
            run()
            seconds[call].append(time.perf_counter() - began)
    speeds = {call: len(texts) / statistics.median(times) for call, times in seconds.items()}
    ratio = speeds["regard"] / speeds["sentence-transformers"]
    rounded = {call: round(speed, 1) for call, speed in speeds.items()}
    return {"case": name, "texts_per_second": rounded, "ratio": round(ratio, 2), "difference": apart}


if __name__ == "__main__":
    main()
