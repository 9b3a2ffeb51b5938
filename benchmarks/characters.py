"""A character model of tiny-shakespeare: how surprised it is by the last tenth, and what it writes.

    python benchmarks/characters.py --data ../shared/data                   # GPT on a GPU, 4 small layers on a CPU
    python benchmarks/characters.py --preset lstm-characters --data ../shared/data

The clock starts before the text is read and ends with the last score: compiling and scoring count.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import regard
from regard.text.learn import train_tokenizer

GPU: dict[str, Any] = {"batch_tokens": 16_384, "steps": 2500, "lr": 1e-3, "dropout": 0.3, "warmup": 100, "window": 256}
CPU: dict[str, Any] = {"batch_tokens": 512, "steps": 2100, "lr": 3e-3, "dropout": 0.0, "warmup": 200, "window": 128}
BOTH: dict[str, Any] = {"schedule": "cosine", "adam_beta2": 0.99, "weight_decay": 0.1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--preset", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", nargs="*", default=(), metavar="NAME=VALUE", help="other settings of the training")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    gpu = args.device != "cpu"
    own = {name: json.loads(value) for name, value in (one.split("=", 1) for one in args.set)}
    settings = {**(GPU if gpu else CPU), **BOTH, **own}
    line = trained(args, args.preset or ("gpt2-mini" if gpu else "llama-micro"), settings)
    print(json.dumps(line), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "characters.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def trained(args: argparse.Namespace, preset: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One training, its score, and a stretch of what it writes."""
    text = gzip.decompress((args.data / "tinyshakespeare/input.txt.gz").read_bytes()).decode()
    began, scores = time.perf_counter(), []

    def on_event(event: Any) -> None:
        if event.kind == "score":
            scores.append([event.step, round(time.perf_counter() - began, 1), event.values])
            print(scores[-1], flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder, cut = Path(temporary), int(0.9 * len(text))
        (folder / "train.txt").write_text(text[:cut])
        (folder / "valid.txt").write_text(text[cut:])
        words = train_tokenizer([folder / "train.txt"], kind="char", size=500)
        result = regard.pretrain(
            [folder / "train.txt"],
            dev=[folder / "valid.txt"],
            objective="causal",
            preset=preset,
            tokenizer=words,
            out=folder / "model",
            seed=args.seed,
            device=args.device,
            progress=on_event,
            **{"eval_every": max(settings["steps"] // (8 if args.device != "cpu" else 2), 1), **settings},
        )
        seconds = time.perf_counter() - began
        model = regard.load(folder / "model", device=args.device)
        sample = model.generate("ROMEO:", max_tokens=400, temperature=0.8, seed=args.seed)
    return {
        "preset": preset,
        "parameters": sum(one.numel() for one in model.network.parameters()),
        "nll": result.scores["nll"].value,
        "scores": {name: score.value for name, score in result.scores.items()},
        "seconds": seconds,
        "steps": result.steps,
        "tokens": result.tokens,
        "curve": scores,
        "settings": settings,
        "machine": torch.cuda.get_device_name() if args.device != "cpu" else "cpu",
        "sample": sample,
    }


if __name__ == "__main__":
    main()
