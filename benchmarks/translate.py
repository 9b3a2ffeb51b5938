"""From the bottleneck to the Transformer: one translation after the other, scored on the valid split.

    python benchmarks/translate.py --data ../shared/data
    python benchmarks/translate.py --pairs en-de --networks gru gru-additive --device cpu --set epochs=1
    python benchmarks/translate.py --pairs en-de --networks transformer-small --grid rdrop=0,2.5 --seeds 0 1 2
    python benchmarks/translate.py --pairs en-de --networks transformer-small --bpe 8000 --set epochs=60 lr=0.003 \\
        rdrop=2.5 'model={"layers": 4, "decoder_layers": 4}'

Every network learns the same pairs with the same joint vocabulary, and writes greedily and with five beams, for several
length penalties. What is not set here is what `regard train` chooses. `--grid` trains with all combinations of these
values. With `--bpe SIZE` the vocabulary is BPE of that size; without it, the preset's. A line a training goes
to translate.jsonl, so that several of these may run side by side.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu
import torch

import regard
from regard.data.records import TranslateRecord
from regard.text.learn import train_tokenizer_from_texts
from regard.training.load_data import LabeledData, load_data, texts_of

BEAMS = 5
PENALTIES = (0.6, 0.8, 1.0, 1.2, 1.4)  # of the length, in beam search
PAIRS: dict[str, tuple[str, dict[str, str]]] = {
    "en-de": ("multi30k", {"source": "en", "target": "de"}),
    "de-en": ("multi30k", {"source": "de", "target": "en"}),
    "eng-spa": ("eng_spa", {}),
}
NETWORKS = ("gru", "gru-dot", "gru-bilinear", "gru-additive", "transformer-small")
RECURRENT: dict[str, Any] = {"epochs": 20, "batch_tokens": 16_384, "lr": 2e-3, "dropout": 0.4, "eval_every": 150}
TRANSFORMER: dict[str, Any] = {"eval_every": 400}
LARGER: dict[str, dict[str, Any]] = {  # four times as many pairs
    "gru": {"epochs": 8, "eval_every": 200},
    "transformer": {"eval_every": 700},
}


def learn_bpe(data: LabeledData, size: int, folder: Path) -> Path:
    """A folder with a joint BPE vocabulary of the training texts."""
    folder.mkdir()
    train_tokenizer_from_texts(texts_of(data.train), kind="bpe", size=size, special_tokens="t5").save(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--pairs", nargs="+", choices=tuple(PAIRS), default=tuple(PAIRS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", nargs="*", default=(), metavar="NAME=VALUE", help="other settings of the training")
    parser.add_argument("--grid", nargs="*", default=(), metavar="NAME=VALUE,...", help="settings with several values")
    parser.add_argument("--bpe", type=int, metavar="SIZE", help="size of a BPE vocabulary, instead of the preset's")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    for pair in args.pairs:
        for network, own, seed in itertools.product(args.networks, combinations(args.grid), args.seeds):
            line = trained(pair, network, args, own, seed)
            print(json.dumps(line), flush=True)
            with (args.out / "translate.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


def combinations(grid: Sequence[str]) -> list[dict[str, Any]]:
    """All combinations of the values of a grid, such as ["rdrop=0,2.5", "seed=0,1"]."""
    names = [one.partition("=")[0] for one in grid]
    values = [json.loads(f"[{one.partition('=')[2]}]") for one in grid]
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)]


def trained(pair: str, network: str, args: argparse.Namespace, own: dict[str, Any], seed: int) -> dict[str, Any]:
    """One training and its scores, greedy and with beams."""
    path, columns = PAIRS[pair]
    kind = network.partition("-")[0]
    settings = {**(RECURRENT if kind == "gru" else TRANSFORMER), **(LARGER[kind] if pair == "eng-spa" else {})}
    settings |= {name: json.loads(value) for name, value in (one.split("=", 1) for one in args.set)} | own
    data = load_data(args.data / path, task="translate", columns=columns or None)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = None if args.bpe is None else learn_bpe(data, args.bpe, Path(folder) / "tokenizer")
        result = regard.train(
            data,
            preset=network,
            tokenizer=tokenizer,
            out=Path(folder) / "model",
            seed=seed,
            device=args.device,
            **settings,
        )
        learned = time.perf_counter() - began
        model = regard.load(Path(folder) / "model", device=args.device)
        dev = [one for one in data.dev if isinstance(one, TranslateRecord)]
        sources = [one.source for one in dev]
        texts = {penalty: model.translate(sources, beams=BEAMS, length_penalty=penalty) for penalty in PENALTIES}
    gold = [[one.target for one in dev]]
    metrics = {"bleu": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF(), "bleu_lowercase": sacrebleu.BLEU(lowercase=True)}
    beam = {name: metric.corpus_score(texts[1.0], gold).score for name, metric in metrics.items()}
    return {
        "pair": pair,
        "network": network,
        "parameters": sum(one.numel() for one in model.network.parameters()),
        "greedy": {name: score.value for name, score in result.scores.items()},
        "interval": [result.scores["bleu"].low, result.scores["bleu"].high],
        f"beams {BEAMS}": beam,
        "length penalty": {str(one): metrics["bleu"].corpus_score(text, gold).score for one, text in texts.items()},
        "signatures": {name: str(metric.get_signature()) for name, metric in metrics.items()},
        "bpe": args.bpe,
        "rows": len(dev),
        "steps": result.steps,
        "tokens": result.tokens,
        "minutes": learned / 60,
        "seed": seed,
        "settings": settings,
        "machine": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


if __name__ == "__main__":
    main()
