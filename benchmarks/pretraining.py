"""A BERT-tiny pretrained on plain text with hidden words and next sentences, and what that is worth on SST-2.

python benchmarks/pretraining.py corpus.txt.xz --tokenizer FOLDER --data ../shared/data --out benchmarks/results
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from sets import SETS

from regard.training.pretrain import pretrain
from regard.training.run import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="none: only what random weights reach")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--batch-tokens", type=int, default=32_768)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()

    def tell(event: Any) -> None:
        if event.kind != "log" or event.step % 1000 == 0:
            print(f"{time.perf_counter() - began:.0f} s", event.kind, event.step, event.values, flush=True)

    lines: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny"
        if given.files:
            found = pretrain(
                given.files,
                out=tiny,
                objective="mlm+nsp",
                preset="bert-tiny",
                tokenizer=given.tokenizer,
                steps=given.steps,
                batch_tokens=given.batch_tokens,
                window=128,
                lr=1e-3,
                dev_share=0.01,
                eval_every=max(given.steps // 8, 1),
                log_every=50,
                dropout=0.0,
                tell=tell,
            )
            lines = {"pretrain": found.json(), "minutes": (time.perf_counter() - began) / 60}
            for name in ("curves.png", "metrics.jsonl"):
                shutil.copy(tiny / name, given.out / f"pretrain-{name}")
            write(given.out, lines)
            lines["sst2 from pretrained"] = tuned(given, Path(folder), start=tiny)
        lines["sst2 from random"] = tuned(given, Path(folder), preset="bert-tiny", tokenizer=given.tokenizer)
        write(given.out, lines)


def tuned(given: argparse.Namespace, folder: Path, **start: Any) -> list[float]:
    """Accuracy on a tenth of SST-2 with three seeds."""
    data = SETS["sst2"].gather(given.data)
    same = {"epochs": 3, "lr": 3e-4, "batch_tokens": 832, "overwrite": True}
    runs = [train(data, out=folder / "tuned", seed=seed, **same, **start) for seed in range(3)]
    return [run.scores["accuracy"].value for run in runs]


def write(out: Path, lines: dict[str, Any]) -> None:
    print(json.dumps(lines), flush=True)
    (out / "pretraining.json").write_text(json.dumps(lines, indent=2))


if __name__ == "__main__":
    main()
