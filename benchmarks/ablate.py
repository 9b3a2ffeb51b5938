"""Pretraining with one setting changed at a time, each for the same seconds of a GPU, scored on the same held-out text.

    python benchmarks/prepare_corpus.py --articles … --books … --out corpus
    regard tokenizer corpus/*.txt --size 8192 --out tokenizers/8192       # one folder for each vocabulary of the queue
    python benchmarks/ablate.py queue.jsonl --corpus corpus --tokenizers tokenizers --out results.jsonl

A line of the queue is a JSON object: `name`, and what differs from BASE below; `settings` are those of
`regard.pretrain` and are merged with those of BASE. A run first measures its speed for a few steps; then it trains for
as many steps as fit into `seconds`. One run at a time trains, while others start and compile. Results are written as
they come. With `"bare": true` only the training step is timed.

Scores: masked accuracy (15 % of the tokens, blocks of 128 of one document) and next-sentence accuracy on held-out
articles and books, as `regard.pretrain` computes them. Accuracies of single tokens cannot be compared between
vocabularies, so whole words are masked too, the same for every vocabulary: `words` is the fraction of them whose tokens
are all predicted, `nats_per_word` their mean negative log-likelihood.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import regard
from regard.checkpoint.source import from_preset
from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.data.batching.framing import Frame
from regard.data.batching.prefetch import Prefetcher
from regard.data.corpus import sentence_pairs, text_source
from regard.data.corpus.text_source import TextSource, split_corpus
from regard.data.corpus.token_store import Corpus
from regard.predict import load
from regard.ragged import Ragged
from regard.tasks.inference import network_runner, score_rows
from regard.tasks.language.masked import Masked
from regard.text.tokenizer import Tokenizer
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine.optimizer import build_optimizer
from regard.training.engine.packed_inputs import PackedInputs
from regard.training.engine.stepper import Stepper
from regard.training.from_scratch.model_settings import config_changes
from regard.training.initial_model import set_dropout
from regard.training.plan import fixed_batch_shape
from regard.training.settings import Settings

BASE: dict[str, Any] = {
    "vocabulary": 8192,
    "data": ["articles", "books"],
    "objective": "mlm+nsp",
    "preset": "bert-mini",
    "mask_rate": 0.15,
    "mask_unit": "token",
    "seconds": 60,
    "settings": {
        "model": {"layers": 6, "width": 256, "attention": {"heads": 4}, "max_tokens": 512},
        "window": 128,
        "batch_tokens": 65536,
        "lr": 1e-3,
        "schedule": "linear",
        "warmup": 0.05,
        "dropout": 0.0,
        "seed": 0,
    },
}
PROBE_STEPS = 300  # to measure the speed of a run; the first ones are left out
SKIPPED_STEPS = 60
BARE_STEPS = 120
EVALUATION_WINDOW = 128  # tokens of the blocks that masked accuracy is measured on
WORDS = 64  # words of the texts in which whole words are masked: at most about 128 tokens in any vocabulary
WORD_RATE = 0.15
MAX_TOKENS = 512  # of such a text, which has more where a name is cut into many pieces
MAX_TEXTS = 2500  # of that many words, from each held-out file
EPOCHS_PER_SECOND = 0.19  # whose pairs are sampled beforehand
MAX_WAIT = 200  # seconds for a vocabulary, or for the tokenized text
HELD_OUT = ("articles", "books")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queue", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/ablate"), help="folder for stores and models")
    parser.add_argument("--ahead", type=int, default=3, help="runs that start while one trains")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds after which no further run starts training")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--run", type=int, default=None, help="only this line of the queue, in this process")
    parser.add_argument("--only", nargs="+", default=[], help="names of the runs, or beginnings of names")
    parser.add_argument("--keep", type=Path, default=None, help="folder for the trained models; not kept if not given")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    lines = [line for line in args.queue.read_text().splitlines() if line.strip()]
    specs = [merged(BASE, json.loads(line)) for line in lines]
    if args.only:
        specs = [spec for spec in specs if spec["name"].startswith(tuple(args.only))]
    if args.run is not None:
        run(specs[args.run], args)
        return
    began = time.monotonic()
    pool = prepare(specs, args)
    os.environ["ABLATE_END"] = str(began + args.limit + time.time() - time.monotonic())
    waiting, running = list(range(len(specs))), list[subprocess.Popen[bytes]]()
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        if waiting and len(running) <= args.ahead and time.monotonic() - began < args.limit:
            number = waiting.pop(0)
            log = (args.work / f"run-{number}.log").open("wb")
            command = [sys.executable, __file__, *sys.argv[1:], "--run", str(number)]
            running.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
            time.sleep(1)  # they wait for the GPU in this order
        elif not running:
            break
        time.sleep(0.2)
    pool.shutdown(cancel_futures=True)
    print(f"{time.monotonic() - began:.0f} s: done; {len(waiting)} runs were not started", flush=True)


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with changes, also inside nested objects."""
    result = dict(base)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(base.get(name), dict)
        result[name] = merged(base[name], value) if both else value
    return result


# Before the runs: tokenized text and sampled pairs, in parallel.


def prepare(specs: list[dict[str, Any]], args: argparse.Namespace) -> ProcessPoolExecutor:
    """Start to tokenize the text for each run, and to sample the pairs of the first epochs, slow in one process.

    Runs wait for the text, and sample what is not there yet themselves.
    """
    stores = {store_name(spec): spec for spec in specs}
    pairs = {
        (store_name(spec), spec["settings"]["window"], spec["settings"]["seed"]): spec
        for spec in specs
        if spec["objective"] == "mlm+nsp"
    }
    pool = ProcessPoolExecutor(max_workers=max(len(stores) + 1, min(os.cpu_count() or 1, 14)))
    jobs = [pool.submit(build_store, spec, args) for spec in stores.values() if not ready(spec, args).exists()]
    epochs = max(math.ceil(EPOCHS_PER_SECOND * spec["seconds"]) for spec in specs)
    for epoch in range(epochs if args.device == "cuda" else 1):
        jobs += [pool.submit(sample_epoch, spec, epoch, args) for spec in pairs.values()]
    for job in jobs:
        job.add_done_callback(lambda done: done.exception() and print(done.exception(), flush=True))
    return pool


def store_name(spec: dict[str, Any]) -> str:
    kind = "pairs" if spec["objective"] == "mlm+nsp" else "blocks"
    return f"{spec['vocabulary']}-{'-'.join(spec['data'])}-{kind}"


def files(spec: dict[str, Any], corpus: Path) -> list[Path]:
    return [corpus / f"{name}.txt" for name in spec["data"]]


def build_store(spec: dict[str, Any], args: argparse.Namespace) -> None:
    began = time.monotonic()
    vocabulary = args.tokenizers / str(spec["vocabulary"])
    wait_for(vocabulary)  # it may still be learned
    tokenizer = Tokenizer.load(vocabulary)
    folder = args.work / store_name(spec) / "train"
    folder.parent.mkdir(exist_ok=True)
    corpus = Corpus.build(files(spec, args.corpus), tokenizer, folder, sentences=spec["objective"] == "mlm+nsp")
    ready(spec, args).touch()
    seconds = time.monotonic() - began
    print(f"{store_name(spec)}: {int(corpus.bounds[-1]):,} tokens, {seconds:.0f} s", flush=True)


def ready(spec: dict[str, Any], args: argparse.Namespace) -> Path:
    """The file that says that the text of a run is tokenized."""
    path: Path = args.work / f"{store_name(spec)}.ready"
    return path


def wait_for(path: Path) -> None:
    began = time.monotonic()
    while not path.exists():
        if time.monotonic() - began > MAX_WAIT:
            raise RuntimeError(f"{path.name} was not made in time")
        time.sleep(0.1)


def sample_epoch(spec: dict[str, Any], epoch: int, args: argparse.Namespace) -> None:
    wait_for(ready(spec, args))
    keep_pairs(args.work)
    text(spec, args).epoch(epoch)


def text(spec: dict[str, Any], args: argparse.Namespace) -> TextSource:
    """The training sequences of a run."""
    tokenizer = Tokenizer.load(args.tokenizers / str(spec["vocabulary"]))
    folder = args.work / store_name(spec) / "train"
    objective = spec["objective"]
    corpus = Corpus.build(files(spec, args.corpus), tokenizer, folder, sentences=objective == "mlm+nsp")
    stream = split_corpus(corpus, fraction=0.0)[0]
    settings = spec["settings"]
    return TextSource(stream, Frame.of(tokenizer), objective, max_tokens=settings["window"], seed=settings["seed"])


def keep_pairs(work: Path) -> None:
    """Read the pairs of an epoch from a file where they were sampled before: sampling takes as long as training."""

    def sample(sentences: Any, documents: Any, **options: Any) -> sentence_pairs.SentencePairs:
        key = hashlib.sha256(repr((len(sentences), int(sentences[-1]), len(documents), options)).encode()).hexdigest()
        path = work / f"pairs-{key[:20]}.npz"
        if path.exists():
            kept = np.load(path)
            return sentence_pairs.SentencePairs(kept["first"], kept["second"], kept["labels"])
        began = time.monotonic()
        pairs = sentence_pairs.sample_pairs(sentences, documents, **options)
        print(f"sampled {len(pairs):,} pairs in {time.monotonic() - began:.1f} s", flush=True)
        part = path.with_name(f"{path.stem}-{os.getpid()}.npz")
        np.savez(part, first=pairs.first, second=pairs.second, labels=pairs.labels)
        part.replace(path)
        return pairs

    vars(text_source)["sample_pairs"] = sample


# One run.


def run(spec: dict[str, Any], args: argparse.Namespace) -> None:
    """Measure the speed, train for the seconds of the run, score, and write a line of results."""
    line: dict[str, Any] = {"name": spec["name"], "spec": spec}
    try:
        line |= trained(spec, args)
    except Exception as error:
        traceback.print_exc()
        line["error"] = f"{type(error).__name__}: {error}"[:600]
    with args.out.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(line) + "\n")
    short = {name: value for name, value in line.items() if name not in ("spec", "curve")}
    print(json.dumps(short), flush=True)


def trained(spec: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    wait_for(ready(spec, args))
    began = time.monotonic()
    keep_pairs(args.work)
    if spec.get("bare"):
        return bare_speed(spec, args)
    settings = dict(spec["settings"])
    if "steps" in spec:
        steps, rate = int(spec["steps"]), 0.0
    else:
        rate = probe_speed(spec, args)
        steps = SKIPPED_STEPS + int(spec["seconds"] * rate)
    probed = time.monotonic()
    clock = Clock(args.work / "gpu.lock", hold_from=SKIPPED_STEPS, record=True)
    folder = args.work / f"model-{os.getpid()}"
    result = pretrain(spec, args, folder, clock, steps=steps, log_every=max(SKIPPED_STEPS, steps // 40), **settings)
    clock.release()
    ended = time.monotonic()
    scores = evaluate(spec, args, folder)
    if args.keep is not None:
        shutil.copytree(folder, args.keep / spec["name"], dirs_exist_ok=True)
    done = json.loads((folder / "run.json").read_text())["done"]
    shutil.rmtree(folder)
    return {
        "parameters": scores.pop("parameters"),
        "steps": steps,
        "tokens": done["tokens"],
        "steps_per_second": round(rate, 2),
        "tokens_per_second": round(done["tokens"] * (1 - clock.held_at / steps) / clock.seconds),
        "tokens_per_second_at_best": round(max(clock.speeds[1:], default=0.0)),
        "gpu_seconds": round(clock.seconds, 1),
        "scores": scores,
        "curve": clock.curve,
        "seconds": {
            "probe": round(probed - began, 1),
            "train": round(ended - probed, 1),
            "waited": round(clock.waited, 1),
            "evaluate": round(time.monotonic() - ended, 1),
        },
        "new_heads": list(result.new_heads),
    }


def probe_speed(spec: dict[str, Any], args: argparse.Namespace) -> float:
    """Steps a second, alone on the GPU; measured once for runs that differ in other settings only."""
    settings = dict(spec["settings"])
    same = {name: settings[name] for name in ("model", "window", "batch_tokens", "dropout")}
    same |= {name: spec[name] for name in ("vocabulary", "objective", "preset", "mask_rate", "mask_unit")}
    key = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]
    with (args.work / f"rate-{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = args.work / f"rate-{key}"
        if known.exists():
            return float(known.read_text())
        clock = Clock(args.work / "gpu.lock", hold_from=SKIPPED_STEPS)
        folder = args.work / f"probe-{os.getpid()}"
        pretrain(spec, args, folder, clock, steps=PROBE_STEPS, log_every=SKIPPED_STEPS, **settings)
        clock.release()
        shutil.rmtree(folder)
        rate = SKIPPED_STEPS / min(clock.intervals)  # other runs compile meanwhile: the best interval counts
        known.write_text(str(rate))
        return rate


def bare_speed(spec: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Tokens a second of the training step alone: with batches that are there already, and fed by a thread."""
    tokenizer = Tokenizer.load(args.tokenizers / str(spec["vocabulary"]))
    task = Masked.of(tokenizer, follows=spec["objective"] == "mlm+nsp", rate=spec["mask_rate"], unit=spec["mask_unit"])
    settings = Settings.of(spec["settings"])
    changes = config_changes(spec["preset"], settings.model)
    network = from_preset(spec["preset"], heads=task.heads, seed=0, vocabulary=tokenizer.size, **changes).network
    network = network.to(args.device).train()
    set_dropout(network, settings.dropout or 0.0)
    rows = text(spec, args).epoch(0)
    lengths = rows.lengths
    assert settings.batch_tokens is not None
    assert settings.window is not None
    shape, sequences = fixed_batch_shape(settings.batch_tokens, None, lengths, settings.window, 512)
    plan = BatchPlan(lengths, BatchSettings(shape.tokens, sequences=sequences))
    sizes = [int(lengths[plan.rows(number)].sum()) for number in range(BARE_STEPS)]
    optimizer = build_optimizer(network, fill_from_recipe(settings), lr=1e-4)
    stepper = Stepper(network, task, optimizer, clip=1.0, dtype=torch.bfloat16, compile=True, record=True)

    def packed(number: int) -> PackedInputs:
        return PackedInputs.of(rows.take(plan.rows(number)).fixed(**vars(shape)), pinned=True)

    def step(inputs: PackedInputs) -> None:
        stepper.part(inputs)
        stepper.update()

    def timed(batches: Iterator[PackedInputs]) -> float:
        synchronize()
        began = time.monotonic()
        for inputs in batches:
            step(inputs)
        synchronize()
        return sum(sizes) / (time.monotonic() - began)

    kept = [packed(number) for number in range(8)]
    for inputs in kept:
        step(inputs)
    with (args.work / "gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        alone = timed(kept[number % 8] for number in range(BARE_STEPS))
        fed = timed(iter(Prefetcher(packed(number) for number in range(BARE_STEPS))))
    began = time.monotonic()
    for number in range(20):
        packed(number)
    batch = (time.monotonic() - began) / 20
    return {
        "step_alone": round(alone),
        "step_fed_by_thread": round(fed),
        "seconds_to_make_a_batch": round(batch, 5),
        "tokens_of_a_batch": sum(sizes) // BARE_STEPS,
    }


def pretrain(
    spec: dict[str, Any], args: argparse.Namespace, folder: Path, clock: Clock, *, steps: int, **settings: Any
) -> Any:
    return regard.pretrain(
        files(spec, args.corpus),
        out=folder,
        objective=spec["objective"],
        preset=spec["preset"],
        tokenizer=args.tokenizers / str(spec["vocabulary"]),
        store=args.work / store_name(spec),
        mask_rate=spec["mask_rate"],
        mask_unit=spec["mask_unit"],
        dev_fraction=0.0,
        steps=steps,
        eval_every=steps,
        save_every=10 * steps,
        compile="yes" if args.device == "cuda" else "no",
        device=args.device,
        progress=clock,
        **settings,
    )


class Clock:
    """Called with the events of a training: waits for the GPU once the step is compiled, then measures.

    Steps up to `hold_from` run beside the training that holds the GPU; they load kernels.
    """

    def __init__(self, lock: Path, *, hold_from: int, record: bool = False) -> None:
        self.file = lock.open("w")
        self.hold_from, self.record = hold_from, record
        self.began = self.seconds = self.waited = 0.0
        self.held_at = 0
        self.curve: list[tuple[int, float]] = []
        self.speeds: list[float] = []
        self.intervals: list[float] = []

    def __call__(self, event: Any) -> None:
        if event.kind == "note":
            print(event.values, flush=True)
        if event.kind != "log":
            return
        if self.record:
            self.curve.append((event.step, round(event.values["loss"], 4)))
        if not self.began and event.step >= self.hold_from:
            wait = time.monotonic()
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.waited = time.monotonic() - wait
            if time.time() > float(os.environ.get("ABLATE_END", "inf")):
                raise RuntimeError("there was no time left")
            synchronize()
            self.began, self.held_at = time.monotonic(), event.step
            return
        if self.began:
            synchronize()
            before, self.seconds = self.seconds, time.monotonic() - self.began
            self.intervals.append(self.seconds - before)
            self.speeds.append(float(event.values["tokens_per_second"]))

    def release(self) -> None:
        self.file.close()


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# Scores.


def evaluate(spec: dict[str, Any], args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Masked accuracy, next-sentence accuracy and whole words on each of the held-out files."""
    model = load(folder)
    network = model.network.to(args.device).eval()
    tokenizer = model.tokenizer
    assert tokenizer is not None
    dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
    scores: dict[str, Any] = {"parameters": sum(weight.numel() for weight in network.parameters())}
    for name in HELD_OUT:
        path = args.corpus / f"{name}-held-out.txt"
        with held_out(path, tokenizer, args.work) as stream:
            for objective in ("mlm", "mlm+nsp"):
                if objective == "mlm+nsp" and spec["objective"] != objective:
                    continue
                task = Masked.of(tokenizer, follows=objective == "mlm+nsp")
                source = TextSource(stream, Frame.of(tokenizer), objective, max_tokens=EVALUATION_WINDOW, seed=0)
                run = network_runner(network, task, dtype=dtype)
                device = torch.device(args.device)
                result = score_rows(task, run, source.epoch(0), device=device, batch_tokens=32768, seed=0)
                values = {key: round(value.value, 5) for key, value in result.scores.items()}
                if objective == "mlm+nsp":
                    scores[f"{name} next"] = values["next_accuracy"]
                else:
                    scores[f"{name} masked"] = values["masked_accuracy"]
                    scores[f"{name} nll"] = values["nll"]
        right, nats = whole_words(network, tokenizer, texts(path), device=args.device, dtype=dtype)
        scores |= {f"{name} words": round(right, 5), f"{name} nats_per_word": round(nats, 4)}
    return scores


@contextmanager
def held_out(path: Path, tokenizer: Tokenizer, work: Path) -> Iterator[Any]:
    folder = work / f"held-out-{os.getpid()}-{path.stem}"
    corpus = Corpus.build([path], tokenizer, folder, sentences=True)
    yield split_corpus(corpus, fraction=0.0)[0]
    shutil.rmtree(folder, ignore_errors=True)


def texts(path: Path) -> list[str]:
    """Pieces of so many words, from paragraphs that are long enough, the same in every call."""
    pieces = []
    for paragraph in path.read_text(encoding="utf-8").split("\n"):
        words = paragraph.split()
        pieces += [" ".join(words[at : at + WORDS]) for at in range(0, len(words) - WORDS + 1, WORDS)]
    return random.Random(0).sample(pieces, min(MAX_TEXTS, len(pieces)))


@dataclass(frozen=True)
class MaskedText:
    """A text with masked words: its tokens, and for each word the places of its tokens and the tokens themselves."""

    ids: list[int]
    words: list[list[tuple[int, int]]]


def mask_words(piece: str, tokenizer: Tokenizer, rng: random.Random) -> MaskedText:
    encoding = tokenizer.encode(piece)
    ids, words = list(encoding.ids)[:MAX_TOKENS], []
    for match in re.finditer(r"[A-Za-z]+", piece):
        if rng.random() >= WORD_RATE:
            continue
        start, end = match.span()
        inside = [at for at, (a, b) in enumerate(encoding.offsets[: len(ids)]) if start <= a < b <= end]
        words.append([(at, encoding.ids[at]) for at in inside])
    for at, _ in (token for word in words for token in word):
        ids[at] = int(tokenizer.mask or 0)
    return MaskedText(ids, words)


@torch.no_grad()
def whole_words(
    network: Any, tokenizer: Tokenizer, pieces: list[str], *, device: str, dtype: torch.dtype
) -> tuple[float, float]:
    """The fraction of masked words that are predicted whole, and their mean negative log-likelihood.

    The tokens of a word are predicted independently of each other. Words that the vocabulary does not have are wrong.
    """
    rng = random.Random(1)
    masked = [mask_words(piece, tokenizer, rng) for piece in pieces]
    right, nats, count = 0, 0.0, 0
    for first in range(0, len(masked), 128):
        part = masked[first : first + 128]
        lengths = [len(one.ids) for one in part]
        starts = np.cumsum([0, *lengths]).tolist()
        tokens = Ragged.from_flat(
            torch.tensor([token for one in part for token in one.ids], device=device),
            lengths,
            segments=torch.zeros(sum(lengths), dtype=torch.long, device=device),
        )
        words = [(start, word) for start, one in zip(starts, part, strict=False) for word in one.words]
        places = torch.tensor([start + at for start, word in words for at, _ in word], device=device)
        targets = torch.tensor([token for _, word in words for _, token in word], device=device)
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            logits = network(tokens, at=places).logits.float()
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none").tolist()
        hits = (logits.argmax(1) == targets).tolist()
        at = 0
        for _, word in words:
            known = bool(word) and all(token != tokenizer.unk for _, token in word)
            right += known and all(hits[at : at + len(word)])
            nats += sum(losses[at : at + len(word)])
            count += 1
            at += len(word)
    return right / max(count, 1), nats / max(count, 1)


if __name__ == "__main__":
    main()
