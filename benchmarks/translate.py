"""From the bottleneck to the Transformer: one translation after the other, scored on the valid split.

    python benchmarks/translate.py --data ../shared/data
    python benchmarks/translate.py --pairs en-de --networks gru gru-additive --device cpu --set epochs=1

Every network learns the same pairs with the same joint vocabulary, and writes greedily and with five beams. What is not
set here is what `regard train` chooses. A line a training goes to translate.jsonl, so that several of these may run
side by side.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import sacrebleu
import torch

import regard
from regard.data.records import TranslateRecord
from regard.training.load_data import load_data

BEAMS = 5
PAIRS: dict[str, tuple[str, dict[str, str]]] = {
    "en-de": ("multi30k", {"source": "en", "target": "de"}),
    "de-en": ("multi30k", {"source": "de", "target": "en"}),
    "eng-spa": ("eng_spa", {}),
}
NETWORKS = ("gru", "gru-dot", "gru-bilinear", "gru-additive", "transformer-small")
RECURRENT: dict[str, Any] = {"epochs": 20, "batch_tokens": 16_384, "lr": 2e-3, "dropout": 0.4, "eval_every": 150}
TRANSFORMER: dict[str, Any] = {
    "epochs": 30,
    "batch_tokens": 8192,
    "lr": 2e-3,
    "dropout": 0.3,
    "schedule": "cosine",
    "eval_every": 400,
}
LARGER: dict[str, dict[str, Any]] = {  # four times as many pairs
    "gru": {"epochs": 8, "eval_every": 200},
    "transformer": {"epochs": 12, "lr": 1e-3, "dropout": 0.2, "eval_every": 700},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--pairs", nargs="+", choices=tuple(PAIRS), default=tuple(PAIRS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", nargs="*", default=(), metavar="NAME=VALUE", help="other settings of the training")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    for pair in args.pairs:
        for network in args.networks:
            line = trained(pair, network, args)
            print(json.dumps(line), flush=True)
            with (args.out / "translate.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


def trained(pair: str, network: str, args: argparse.Namespace) -> dict[str, Any]:
    """One training and its two scores."""
    path, columns = PAIRS[pair]
    own = dict(one.split("=", 1) for one in args.set)
    kind = network.partition("-")[0]
    settings = {**(RECURRENT if kind == "gru" else TRANSFORMER), **(LARGER[kind] if pair == "eng-spa" else {})}
    settings |= {name: json.loads(value) for name, value in own.items()}
    data = load_data(args.data / path, task="translate", columns=columns or None)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = regard.train(
            data,
            preset=network,
            out=Path(folder) / "model",
            seed=args.seed,
            device=args.device,
            **settings,
        )
        learned = time.perf_counter() - began
        model = regard.load(Path(folder) / "model", device=args.device)
        dev = [one for one in data.dev if isinstance(one, TranslateRecord)]
        text = model.translate([one.source for one in dev], beams=BEAMS)
    gold = [[one.target for one in dev]]
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    beam = {"bleu": bleu.corpus_score(text, gold).score, "chrf": chrf.corpus_score(text, gold).score}
    return {
        "pair": pair,
        "network": network,
        "parameters": sum(one.numel() for one in model.network.parameters()),
        "greedy": {name: result.scores[name].value for name in ("bleu", "chrf")},
        "interval": [result.scores["bleu"].low, result.scores["bleu"].high],
        f"beams {BEAMS}": beam,
        "signatures": {"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())},
        "rows": len(dev),
        "steps": result.steps,
        "tokens": result.tokens,
        "minutes": learned / 60,
        "seed": args.seed,
        "settings": settings,
        "machine": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


if __name__ == "__main__":
    main()
