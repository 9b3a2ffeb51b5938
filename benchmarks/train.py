"""Training, regard and transformers' Trainer in one run.

    python benchmarks/train.py masked                       # speed of masked-LM training, BERT-base shape (needs a GPU)
    python benchmarks/train.py tune --sets sst2 conll       # speed of fine-tuning minilm; --steps 30 for a short look
    python benchmarks/train.py score --sets mrpc --seeds 3  # scores of both on the same split
    python benchmarks/train.py score --sets conll --set context=0  # a setting of regard; here without context

`tune` runs each in a separate process, started as its users start it; with --peer-keeps-memory the Trainer also keeps
freed memory, as regard does.

The sets are read from --data (not part of the project): see `sets.py` for what is expected where.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import peer
import torch
import transformers
from common import DEFAULT_ALLOCATOR, KEEP_MEMORY, Row, SeparateProcess, keep, lengths, memory_note
from sets import SETS, DataSet

from regard.checkpoint.source import from_preset, minilm_folder
from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.data.batching.examples import LEARN, Examples
from regard.data.batching.prefetch import Prefetcher
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import MaskSettings
from regard.data.records import ClassifyRecord, Record
from regard.device import pick_device
from regard.predict import load
from regard.predict.model_task import task_for
from regard.tasks import task_class
from regard.tasks.inference import ScoreResult, network_runner, score_records
from regard.tasks.language.masked import Masked
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.text.tokenizer import Tokenizer
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine.optimizer import build_optimizer
from regard.training.engine.packed_inputs import PackedInputs
from regard.training.engine.stepper import Stepper
from regard.training.initial_model import set_dropout
from regard.training.plan import fixed_batch_shape
from regard.training.settings import Settings
from regard.training.train import train

GPU = torch.cuda.is_available()


def steps_per_second(tokens: list[int], step: Any, *, warm: int) -> float:
    """Real tokens a second of a step called with each number in turn."""
    began, counted = 0.0, 0
    for number, size in enumerate(tokens):
        if number == warm:
            _wait()
            began = time.perf_counter()
        step(number)
        counted += size if number >= warm else 0
    _wait()
    return counted / (time.perf_counter() - began)


def _wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def masked_ours(sizes: Sequence[int], *, tokens: int, steps: int, dropout: float) -> float:
    """Real tokens a second of regard's step, compiled and recorded, fed by a thread."""
    torch.manual_seed(0)
    network = from_preset("bert-base-uncased", heads={"masked": 0}).network.cuda().train()
    set_dropout(network, dropout)
    task = Masked(MaskSettings(103, 30522, (0, 100, 101, 102, 103)))
    lengths_N = np.array(sizes, np.int64)
    ids = np.random.default_rng(0).integers(1000, 30000, int(lengths_N.sum())).astype(np.int32)
    learn = {LEARN: np.zeros(len(ids), np.int8)}
    examples = Examples(ids, np.concatenate(([0], np.cumsum(lengths_N))), np.arange(len(lengths_N)), by_token=learn)
    shape, max_sequences = fixed_batch_shape(tokens, None, lengths_N, 512)
    plan = BatchPlan(examples.lengths, BatchSettings(tokens, sequences=max_sequences))
    step_numbers = [number % plan.steps for number in range(steps)]
    real = [int(lengths_N[plan.rows(step)].sum()) for step in step_numbers]
    parts = (examples.take(plan.rows(step)).fixed(**vars(shape)) for step in step_numbers)
    made = (PackedInputs.of(part, pinned=True) for part in parts)
    feed = iter(Prefetcher(made))  # batches come from the host as in a training
    optimizer = build_optimizer(network, fill_from_recipe(Settings()), lr=1e-4)
    stepper = Stepper(network, task, optimizer, clip=1.0, dtype=torch.bfloat16, compile=True, record=True)

    def step(number: int) -> None:
        stepper.part(next(feed))
        stepper.update()

    return steps_per_second(real, step, warm=5)


def masked_peer(
    sizes: Sequence[int],
    *,
    steps: int,
    batch: int = 64,
    compile: bool = True,
    trainer: bool = False,
    mask: bool = True,
    dropout: float = 0.1,
) -> float:
    """Real tokens a second of transformers: its Trainer, or a bare loop around the (compiled) model.

    The bare loop hands over the `mask` its collator makes, or leaves it out, as one may where every row is full.
    """
    torch.manual_seed(0)
    config = transformers.BertConfig(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    model = transformers.BertForMaskedLM(config)
    rng = np.random.default_rng(0)
    rows = [{"input_ids": rng.integers(1000, 30000, size).tolist()} for size in sizes]
    tokenizer = transformers.AutoTokenizer.from_pretrained(start_folder())
    collate = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    if trainer:
        clock = peer.Clock(5)
        arguments = transformers.TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=batch,
            max_steps=steps,
            bf16=True,
            optim="adamw_torch_fused",
            dataloader_num_workers=8,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_steps=10**9,
            torch_compile=compile,
        )
        made = transformers.Trainer(
            model=model, args=arguments, train_dataset=peer.Rows(rows), data_collator=collate, callbacks=[clock]
        )
        made.train()
        return float(np.mean(sizes)) * batch * clock.steps / clock.seconds
    model = model.cuda().train()
    call = torch.compile(model) if compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ready = [collate(rows[start : start + batch]) for start in range(0, 6 * batch, batch)]
    ready = [{name: one[name].cuda() for name in one if mask or name != "attention_mask"} for one in ready]

    def step(number: int) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = call(**ready[number % len(ready)]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return steps_per_second([batch * int(np.mean(sizes))] * steps, step, warm=5)


def masked(out: Path, *, steps: int, only: str) -> None:
    """Masked-LM training of BERT-base shape at mean 128 and at full 512; of all cases those with `only` in the name."""
    rng = random.Random(0)
    short, full = lengths(20_000, 128, rng=rng, spread=0.8), [512] * 2_000
    cases: dict[str, Callable[[], float]] = {}
    for dropout in (0.1, 0.0):
        for name, sizes in (("mean 128", short), ("full 512", full)):
            call = partial(masked_ours, sizes, tokens=65_536, steps=steps, dropout=dropout)
            cases[f"regard, {name}, 65536 tokens, dropout {dropout:g}"] = call
    cases["Trainer, mean 128"] = partial(masked_peer, short, steps=60, compile=False, trainer=True)
    bare = "transformers compiled in a bare loop, full 512"
    cases[f"{bare}, without a mask"] = partial(masked_peer, full, steps=40, mask=False)
    cases[f"{bare}, with a mask of ones"] = partial(masked_peer, full, steps=40)
    cases[f"{bare}, with a mask of ones, dropout 0"] = partial(masked_peer, full, steps=40, dropout=0.0)
    cases["Trainer compiled, full 512"] = partial(masked_peer, full, steps=60, trainer=True)
    speeds: dict[str, float] = {}
    for name, call in cases.items():
        if only not in name:
            continue
        try:
            speeds[name] = call()
        except torch.OutOfMemoryError as error:  # text, and the others go on
            print(f"{name}: {error}")
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        print(name, f"{speeds.get(name, float('nan')):,.0f} tokens/s", flush=True)
        (out / "masked-cuda.json").write_text(json.dumps(speeds, indent=2))


def start_folder() -> Path:
    return Path(START) if START else minilm_folder()


START = ""


def begin_at(start: str) -> None:
    """The settings that every process of a run receives first."""
    global START
    START = start
    warnings.simplefilter("ignore")


def learned(data_set: DataSet, records: Sequence[Record], name: str) -> Task:
    return task_class(name).from_records(records)


def ours(
    data_set: DataSet,
    data: Any,
    out: Path,
    *,
    seed: int,
    steps: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """regard on the records that were split already. `overrides` are settings of its training."""
    rows: dict[str, Any] = {}

    def on_event(event: Any) -> None:
        rows[event.kind] = event.values | {"step": event.step}

    overrides = overrides or {}
    length = mean_length(data, overrides.get("context"))
    size = {"batch_tokens": data_set.batch * length} if GPU else {"batch_size": data_set.batch}
    settings: dict[str, Any] = {
        **size,
        "epochs": data_set.epochs,
        "lr": data_set.lr,
        "log_every": 50,
        **data_set.overrides,
        **overrides,
    }
    if steps is not None:
        settings = {**settings, "steps": steps}
        settings.pop("epochs")
    result = train(data, out=out, start=start_folder(), overwrite=True, seed=seed, progress=on_event, **settings)
    done = json.loads((out / "run.json").read_text())["done"]
    scores = {name: value.value for name, value in result.scores.items()}
    main = rows["score"]["main"] if "score" in rows else None
    return {"scores": scores, "main": main, "mean_length": length, **done}


def mean_length(data: Any, context: int | None = None) -> int:
    """Tokens of a sequence, by a sample; of sentences to tag, with their context."""
    tokenizer = Tokenizer.load(start_folder())
    preprocessing = Preprocessing(tokenizer, from_preset("bert-base-uncased", weights=False).config)
    task = task_class(data.task).from_records(data.train, **({} if context is None else {"context": context}))
    return round(float(task.examples(data.train[:3000], preprocessing, labeled=False).lengths.mean()))


def judged(folder: Path, task: Task, records: Sequence[Record], *, cut: int | None) -> ScoreResult:
    """A folder scored by regard, whoever trained it; `cut` shortens texts as the Trainer does."""
    model = load(folder)
    assert model.tokenizer is not None
    if cut is not None:
        records = [shortened(record, model.tokenizer, cut) for record in records]
    preprocessing = Preprocessing(model.tokenizer, model.config)
    device = pick_device()
    dtype = torch.bfloat16 if GPU else torch.float32
    return score_records(
        task,
        network_runner(model.network, task, dtype=dtype),
        records,
        preprocessing,
        device=device,
        batch_tokens=32_768,
    )


def plain(task: Task) -> Task:
    """The task as the Trainer knows it: sentences alone, and the best tag of each word."""
    return replace(task, context=0, constrained=False) if isinstance(task, Tag) else task


def without_constraints(folder: Path, records: Sequence[Record]) -> dict[str, float]:
    """The scores of a tagger that may predict any sequence of tags, also impossible ones."""
    task = task_for(load(folder).checkpoint, folder)
    assert isinstance(task, Tag)
    judge = judged(folder, replace(task, constrained=False), records, cut=None)
    return {key: value.value for key, value in judge.scores.items()}


def shortened(record: Record, tokenizer: Tokenizer, max_length: int) -> Record:
    """The text up to what fits into so many tokens; of other records nothing is cut."""
    if not isinstance(record, ClassifyRecord):
        return record
    encoding = tokenizer.encode(record.text)
    if len(encoding) <= max_length:
        return record
    return replace(record, text=record.text[: encoding.offsets[max_length - 2][1]])


def tune_peer(name: str, data: Path, start: str, steps: int | None) -> dict[str, float]:
    """A short run of the Trainer."""
    begin_at(start)
    data_set, brief = SETS[name], steps or 220
    data_rows = data_set.load(data)
    task = learned(data_set, data_rows.train, data_rows.task)
    with tempfile.TemporaryDirectory() as folder:
        return peer.train(
            data_set, task, data_rows.train, start_folder(), Path(folder), steps=brief, warm=min(20, brief // 3)
        )


def tune_ours(name: str, data: Path, start: str, steps: int | None) -> dict[str, Any]:
    """A short or a whole run of regard."""
    begin_at(start)
    data_rows = SETS[name].load(data)
    with tempfile.TemporaryDirectory() as folder:
        return ours(
            SETS[name],
            data_rows if steps is None else replace(data_rows, dev=[]),
            Path(folder) / "ours",
            seed=0,
            steps=steps,
        )


def tune(names: Sequence[str], data: Path, out: Path, *, steps: int | None, peer_keeps_memory: bool) -> None:
    """Speed of both on each set: a short run of the Trainer, a short or a whole one of regard."""
    rows = []
    which = "-both-keep" if peer_keeps_memory else ""
    for name in names:
        with SeparateProcess(KEEP_MEMORY if peer_keeps_memory else DEFAULT_ALLOCATOR) as there:
            theirs = there.call(tune_peer, name, data, START, steps)
        with SeparateProcess(KEEP_MEMORY) as here:
            mine = here.call(tune_ours, name, data, START, steps)
        later = (mine["steps"] - 1) / mine["steps"]  # the first step warms up
        speed = later * mine["tokens"] / max(mine["seconds"] - mine["first"], 1e-9)
        print(name, theirs, mine, flush=True)
        (out / f"tune-{name}{which}.json").write_text(json.dumps({"trainer": theirs, "regard": mine}, indent=2))
        if steps is None:
            rows.append(
                Row(
                    name,
                    1e3 * theirs["estimated_seconds"],
                    1e3 * (mine["seconds"] - mine["first"]),
                    6.0,
                    f"{mine['main']} {mine['scores'][mine['main']]:.4f}; first step {mine['first']:.0f} s apart",
                )
            )
        else:
            rows.append(
                Row(
                    name,
                    1e6 / theirs["tokens_per_second"],
                    1e6 / speed,
                    3.5,
                    f"{speed:,.0f} real tokens/s against {theirs['tokens_per_second']:,.0f}",
                )
            )
    kind = "cuda" if GPU else "cpu"
    title = "Fine-tuning minilm" + ("" if steps is None else " (ms for 1,000 real tokens)")
    note = memory_note(peer_keeps_memory)
    keep(rows, name=f"tune-{kind}{which}", title=title, peer="transformers' Trainer", out=out, note=note)


def scores(
    names: Sequence[str],
    data: Path,
    out: Path,
    *,
    seeds: Sequence[int],
    who: str,
    overrides: Mapping[str, Any],
    rows: Sequence[int | None],
) -> None:
    """Scores of both on the same split, each row written as it comes. `rows`: limits of training and dev rows."""
    for name in names:
        data_set = SETS[name]
        data_rows = data_set.load(data)
        data_rows = replace(data_rows, train=data_rows.train[: rows[0]], dev=data_rows.dev[: rows[1]])
        task = learned(data_set, data_rows.train, data_rows.task)
        for seed in seeds:
            began = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                if who == "trainer":
                    peer.train(data_set, task, data_rows.train, start_folder(), Path(folder), seed=seed)
                    cut = data_set.max_length if data_rows.task == "classify" else None
                    judge = judged(Path(folder) / "model", plain(task), data_rows.dev, cut=cut)
                    line = {"scores": {key: value.value for key, value in judge.scores.items()}, "main": judge.main}
                else:
                    line = ours(data_set, data_rows, Path(folder) / "ours", seed=seed, overrides=overrides)
                    if isinstance(task, Tag):
                        line["without_constraints"] = without_constraints(Path(folder) / "ours", data_rows.dev)
                    if name == "imdb":
                        judge = judged(Path(folder) / "ours", task, data_rows.dev, cut=512)
                        line["truncated"] = {key: value.value for key, value in judge.scores.items()}
            line |= {"set": name, "who": who, "seed": seed, "wall": time.perf_counter() - began}
            line |= {"settings": dict(overrides), "train_rows": len(data_rows.train), "dev_rows": len(data_rows.dev)}
            print(json.dumps(line), flush=True)
            with (out / f"scores-{who}.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["masked", "tune", "score"])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--start", default="", help="the folder to fine-tune; minilm when empty")
    parser.add_argument("--steps", type=int, default=None, help="a short run of so many steps")
    parser.add_argument("--only", default="", help="masked: the cases whose names hold this, such as 'full 512'")
    parser.add_argument("--peer-keeps-memory", action="store_true", help="tune: the peer keeps freed memory as well")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--who", choices=["regard", "trainer"], default="regard")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="score: settings of regard, such as context=0"
    )
    parser.add_argument(
        "--rows", type=int, nargs=2, default=(None, None), metavar=("TRAIN", "DEV"), help="score: only the first rows"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    begin_at(args.start)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.part == "masked":
        masked(args.out, steps=args.steps or 40, only=args.only)
    elif args.part == "tune":
        tune(args.sets, args.data, args.out, steps=args.steps, peer_keeps_memory=args.peer_keeps_memory)
    else:
        overrides = dict(parsed_setting(pair) for pair in args.set)
        scores(args.sets, args.data, args.out, seeds=args.seeds, who=args.who, overrides=overrides, rows=args.rows)


def parsed_setting(pair: str) -> tuple[str, Any]:
    """A setting from NAME=VALUE; numbers, true and false as in JSON."""
    name, _, value = pair.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


if __name__ == "__main__":
    main()
