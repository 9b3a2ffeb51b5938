"""Is the learning rate that pretraining chooses a good one? A short run of every preset at shares of that rate.

    python benchmarks/rates.py corpus.txt --out benchmarks/results --minutes 9 --workers 10

Each run is a separate process; each row is written as soon as it is measured. `share` 1 is the chosen rate.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.text.learn import train_tokenizer
from regard.training.from_scratch.vocabulary import vocabulary_of
from regard.training.pretrain import pretrain

ENCODERS = ["bert-base-uncased", "bert-tiny", "bert-mini", "bert-small", "bert-medium"]
OTHERS = ["roberta-base", "distilbert-base", "electra-small", "albert-base", "modernbert-base"]
DECODERS = ["gpt2", "gpt2-mini", "llama-micro", "lstm-characters", "gru-characters"]
OBJECTIVES = {"elmo-small": "bidirectional"} | dict.fromkeys(DECODERS, "causal")
LARGE_STEP = 131_072  # tokens, as in long pretrainings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 0.5, 0.25, 0.125])
    parser.add_argument("--presets", nargs="*", default=None)
    parser.add_argument("--jobs", type=Path, default=None, help="runs to make instead, a JSON object per line")
    parser.add_argument("--one", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(run(args.corpus, **json.loads(args.one))), flush=True)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * args.minutes

    def work(job: dict[str, Any]) -> None:
        left = until - time.monotonic()
        if left < 30:
            return
        write(args.out, {**job, **measured(args.corpus, job, left)})

    todo = list(jobs(args))
    with multiprocessing.get_context("spawn").Pool(8) as learners:  # each vocabulary once, before the runs need them
        learners.starmap(
            tokenizer_for, {vocabulary_of(job["preset"]): (args.corpus, job["preset"]) for job in todo}.values()
        )
    with ThreadPoolExecutor(args.workers) as pool:
        list(pool.map(work, todo))


def jobs(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The most important first, since the time may not be enough for all."""
    if args.jobs is not None:
        for line in args.jobs.read_text().splitlines():
            yield {"tokens": None, **json.loads(line)}
        return
    presets = args.presets or [*ENCODERS, *DECODERS, *OTHERS, "elmo-small", "bert-large-uncased"]
    for share in args.shares:
        for preset in presets:
            yield {"preset": preset, "share": share, "steps": args.steps, "tokens": None}
        for preset in [name for name in presets if name in ("bert-base-uncased", "bert-mini", "gpt2")]:
            yield {"preset": preset, "share": share, "steps": args.steps // 2, "tokens": LARGE_STEP}


def measured(corpus: Path, job: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One run in a separate process."""
    command = [sys.executable, __file__, str(corpus), "--one", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        return {"error": "no time left"}
    except subprocess.CalledProcessError as error:
        if "is being built by process" in error.stderr:  # another run tokenizes the same text
            time.sleep(5)
            return measured(corpus, job, seconds - 5)
        return {"error": error.stderr[-400:]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run(
    corpus: Path,
    *,
    preset: str,
    steps: int,
    tokens: int | None,
    share: float = 1.0,
    lr: float | None = None,
    warmup: float | None = None,
) -> dict[str, Any]:
    """The loss at the end, beside that of the counts of single words. `lr` replaces the chosen one."""
    chosen: dict[str, float] = {}
    settings: dict[str, Any] = {"steps": steps, "dev_fraction": 0.02, "batch_tokens": tokens, "eval_every": steps}
    settings["warmup"] = warmup
    vocabulary = tokenizer_for(corpus, preset)
    objective: Any = OBJECTIVES.get(preset, "mlm")
    store = vocabulary.with_name(f"{vocabulary.name}.{objective}")
    with tempfile.TemporaryDirectory() as folder:
        common: dict[str, Any] = {"objective": objective, "preset": preset, "tokenizer": vocabulary, **settings}

        def stop(event: Any) -> None:
            if event.kind == "begin":
                chosen["lr"] = float(event.values["lines"][-1].split("lr ")[1].split(",")[0])
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            pretrain([corpus], out=Path(folder) / "asked", store=store, progress=stop, **common)
        lr = share * chosen["lr"] if lr is None else lr
        began = time.monotonic()
        result = pretrain([corpus], out=Path(folder) / "run", store=store, lr=lr, **common)
        lines = [json.loads(line) for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["kind"] == "log" and line["loss"] is not None]
    scores = {name: score.value for name, score in result.scores.items()}
    return {
        "lr": lr,
        "loss": sum(losses[-4:]) / len(losses[-4:]),
        "lowest": min(losses),
        "dev": math.log(scores["perplexity"]) if "perplexity" in scores else None,
        "unigram": math.log(result.baseline["perplexity"]) if "perplexity" in result.baseline else None,
        "skipped": result.skipped,
        "seconds": round(time.monotonic() - began, 1),
    }


def tokenizer_for(corpus: Path, preset: str) -> Path:
    """The vocabulary of the preset's kind and size, learned once for all runs."""
    kind, size, special_tokens = vocabulary_of(preset)
    folder = corpus.parent / f"{corpus.name}.{kind}-{special_tokens}-{size}"
    if not folder.exists():
        learned = train_tokenizer([corpus], kind=kind, size=size, special_tokens=special_tokens)
        part = Path(tempfile.mkdtemp(dir=corpus.parent))
        learned.save(part)
        with contextlib.suppress(OSError):  # another process was first
            part.rename(folder)
    return folder


def write(out: Path, line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
    with (out / "rates.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
