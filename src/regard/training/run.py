"""From data to a model folder: `regard.train`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.checkpoint.files import read_json
from regard.checkpoint.reading import reading_of
from regard.config import RecurrentConfig
from regard.data.batches import BatchSettings
from regard.data.packing import Ints
from regard.data.records import Record
from regard.device import pick_device
from regard.errors import FolderError, InputError
from regard.metrics.confidence import Score
from regard.model.kernels import runs_flat
from regard.model.network import Network
from regard.model.recurrent import Recurrent
from regard.tasks import task_class
from regard.tasks.answering import CHUNK, Scored, runner, score
from regard.tasks.task import Reading, Task
from regard.training.begin import begin
from regard.training.gather import Data, Where, gather, texts_of
from regard.training.loop import Job, Source, fit, total_steps
from regard.training.lora import adapt, merge
from regard.training.memory import plan_memory, tokens_at_once
from regard.training.optimizer import freeze
from regard.training.outcome import RUN, finish
from regard.training.parallel import World, join, leave
from regard.training.record import Event, Tell
from regard.training.sampling import balanced
from regard.training.settings import Settings
from regard.training.shards import unshard
from regard.training.start import Size, resolved
from regard.training.state import STATE
from regard.training.stepper import Shape
from regard.training.track import tracked

STEADY = 64  # tokens and sequences of fixed shapes are multiples of this
# Settings that may differ between a run and its resumption.
FREE = ("log_every", "save_every", "device", "micro_tokens", "patience", "track")


@dataclass(frozen=True)
class Result:
    """What a training gave: the scores of the best weights on dev, with 95 % intervals."""

    task: str
    rows: int
    scores: dict[str, Score]
    seconds: float
    folder: str
    steps: int
    tokens: int
    skipped: int
    stopped_early: bool

    def json(self) -> dict[str, Any]:
        return asdict(self)


def train(
    data: Where,
    *,
    out: str | Path,
    start: str | Path | None = None,
    preset: str | None = None,
    tokenizer: str | Path | None = None,
    dev: Where | None = None,
    task: str | None = None,
    columns: Mapping[str, str | int] | None = None,
    labels: str | None = None,
    skip_bad: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    tell: Tell | None = None,
    **settings: Any,
) -> Result:
    """Train a model on labelled data and write it as a folder that transformers opens too.

    start: a model folder, minilm, or a hub id to fine-tune; or `preset`, a shape to train from nothing.
    dev: rows to score on; the folder's own valid split, or a tenth of the data, where none is given.
    task: read from the data where it is not told, and so is what `labels` are (single, class, multi, number).
    resume: go on where a run of the same data and settings was stopped or killed; begin it where it had not begun,
        and give its result where it had ended.
    settings: see `regard.training.settings.Settings`.
    """
    asked = chosen = Settings.of(settings)
    folder = claim(Path(out).expanduser(), resume=resume, overwrite=overwrite)
    began = time.monotonic()
    found = gather(
        data,
        dev=dev,
        task=task,
        columns=columns,
        labels=labels,
        dev_share=chosen.dev_share,
        seed=chosen.seed,
        skip_bad=skip_bad,
    )
    known = [*found.train, *found.dev] if found.split_off else found.train
    work = task_class(found.task).learn(known, balance=chosen.balance, smoothing=chosen.smoothing)
    checkpoint, words, pretrained = begin(
        work,
        start=start,
        preset=preset,
        tokenizer=tokenizer,
        texts=texts_of(found.train),
        seed=chosen.seed,
        dropout=chosen.dropout,
    )
    world, device = join(pick_device(chosen.device))
    network = checkpoint.network.to(device)
    reading = reading_of(checkpoint, words, window=chosen.window, overlap=chosen.overlap)
    examples = work.examples(found.train, reading, labelled=True)
    check_rows(work, found.dev, reading)
    gpu = device.type == "cuda"
    chosen = resolved(chosen, Size.of(examples.lengths), checkpoint.config, pretrained=pretrained, gpu=gpu)
    set_up(network, chosen)
    if chosen.track and world.first:
        tell = tracked(folder, tell)
    source: Source = balanced(examples, chosen.seed) if chosen.balance == "sampling" else examples
    job = plan_job(network, work, source, chosen, folder, world=world, resume=resume, tell=tell)
    job = with_score(job, found, reading)
    identity = {"data": found.fingerprint, "start": str(preset or start or "minilm"), **kept(chosen)}
    if resume and (before := ended(folder, identity)) is not None:
        leave(world)
        return before
    if tell is not None and world.first:
        tell(beginning(found, asked, job, identity["start"], network))
    done = fit(with_identity(job, identity))
    if chosen.lora.rank:
        merge(network)
    final = score_of(job, found, reading) if found.dev else None
    if final is not None and (tuned := work.tuned(final.meter)) != work:
        work = tuned
        final = score_of(replace(job, task=tuned), found, reading)
    unshard(network)
    if world.first:
        finish(folder, checkpoint, words, work, job, done, final, found, identity)
    leave(world)
    return Result(
        work.name,
        len(found.train),
        {} if final is None else final.scores,
        round(time.monotonic() - began, 3),
        str(folder),
        done.steps,
        done.tokens,
        done.skipped,
        done.stopped_early,
    )


def check_rows(task: Task, records: Sequence[Record], reading: Reading) -> None:
    """Whether every row can be scored, before hours are spent: a label the training has not seen is found here."""
    for start in range(0, len(records), CHUNK):
        task.examples(records[start : start + CHUNK], reading, labelled=True)


def beginning(data: Data, asked: Settings, job: Job, start: str, network: Network) -> Event:
    """What was recognised, and what was chosen, in words."""
    chosen, source = job.settings, "split off from them" if data.split_off else "given"
    rows = f"{len(data.train):,} rows to learn from"
    rows += f", {len(data.dev):,} to score on, {source}" if data.dev else ", none to score on"
    said = [f"data: {data.why}", f"rows: {rows}"]
    weights = sum(parameter.numel() for parameter in network.parameters())
    said.append(f"model: {start}, {weights:,} parameters, on {next(network.parameters()).device}")
    parts = {
        "lr": f"lr {chosen.lr:.2g}",
        "epochs": f"epochs {chosen.epochs:g}" if chosen.epochs else "",
        "batch_tokens": f"batch_tokens {chosen.batch_tokens:,}" if chosen.batch_tokens else "",
    }
    own = [words for name, words in parts.items() if words and getattr(asked, name) is None]
    if own:
        said.append(f"chosen: {', '.join(own)}: {job.steps:,} steps")
    return Event("begin", 0, job.steps, 0.0, {"said": said})


def claim(folder: Path, *, resume: bool, overwrite: bool) -> Path:
    """The folder to write, refused where it holds something that is not to be touched."""
    if resume and overwrite:
        raise InputError("resume and overwrite were both given: go on, or begin again?")
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file; expected a folder to write.")
    occupied = folder.is_dir() and any(folder.iterdir())
    if resume and not folder.exists():
        raise FolderError(f"{folder} holds no training that could be resumed. Leave --resume out to begin one.")
    if resume and (folder / "config.json").exists() and not (folder / RUN).exists():
        raise FolderError(f"{folder} holds a model that was not trained here, so there is nothing to resume.")
    if occupied and not (resume or overwrite):
        raise FolderError(f"{folder} exists and is not empty. Use --resume to go on, --overwrite to begin again.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(f"{folder} cannot be made: {error.strerror}.") from error
    return folder


def ended(folder: Path, identity: Mapping[str, Any]) -> Result | None:
    """What the training in the folder gave, where it has come to its end."""
    if (folder / STATE).is_dir() or not (folder / RUN).exists():
        return None
    run = read_json(folder, RUN)
    try:
        same = {"data": run["data"]["hash"], "start": run["start"], **run["settings"]}
        done, scores = run["done"], {name: Score(**held) for name, held in run["scores"].items()}
        if any(same[name] != value for name, value in identity.items()):
            raise FolderError(
                f"{folder} cannot be resumed: its training ended, and nothing is left to resume; it had other settings "
                "or data. Begin again with --overwrite, or name a new folder."
            )
        counts = (done["steps"], done["tokens"], done["skipped"], done["stopped_early"])
        return Result(run["task"], run["data"]["train_rows"], scores, done["seconds"], str(folder), *counts)
    except (KeyError, TypeError) as error:
        raise FolderError(f"{folder / RUN} is not what a training writes. Begin again with --overwrite.") from error


def set_up(network: Network, settings: Settings) -> None:
    """What is trained of the network, and how it keeps its states."""
    if settings.lora.rank and settings.shard:
        raise InputError("lora and shard were both given; small matrices need no splitting: leave shard out.")
    if settings.lora.rank and isinstance(network, Recurrent):
        raise InputError("lora has no place in a recurrent network: it has no blocks. Leave lora out.")
    if settings.lora.rank:
        adapt(network, settings.lora, seed=settings.seed)
    freeze(network, settings.freeze)
    for stack in (network.encoder, network.decoder):
        if stack is not None:
            stack.recompute = settings.recompute


def plan_job(
    network: Network,
    task: Task,
    source: Source,
    settings: Settings,
    folder: Path,
    *,
    longest: int | None = None,
    world: World | None = None,
    resume: bool = False,
    tell: Tell | None = None,
) -> Job:
    """How the steps are laid out, and in what form they run on this device.

    longest: the most tokens of a sequence in any epoch; as in the first where not told.
    """
    device = next(network.parameters()).device
    lengths = source.epoch(0).lengths
    longest = longest or int(lengths.max())
    assert settings.batch_tokens is not None
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported() and settings.dtype in ("auto", "bf16")
    fixed = task.steady and compiles(network, settings, device)
    tokens = -(-settings.batch_tokens // STEADY) * STEADY if fixed else settings.batch_tokens
    shape, most = None, settings.batch
    if fixed:
        shape, most = steady_shape(tokens, most, lengths, longest, network.config.longest)
        tokens = shape.tokens
    batches = BatchSettings(tokens, sequences=most, seed=settings.seed)
    world = world or World()
    dtype = torch.bfloat16 if bf16 else torch.float32
    memory = plan_memory(network, dtype=dtype, recompute=settings.recompute)
    at_once = settings.micro_tokens or (tokens_at_once(memory, device, step=tokens) if task.parts else tokens)
    at_once = min(tokens, -(-tokens // world.ranks) + longest, max(at_once, longest))
    if shape is not None:
        at_once = min(tokens, -(-at_once // shape.longest) * shape.longest)
    return Job(
        network=network,
        task=task,
        source=source,
        settings=settings,
        steps=total_steps(source, batches, settings),
        folder=folder,
        batches=batches,
        at_once=at_once,
        memory=memory,
        dtype=dtype,
        shape=None if shape is None else shape.cut(at_once),
        compile=fixed,
        record=fixed and world.ranks == 1,
        world=world,
        resume=resume,
        tell=tell,
    )


def compiles(network: Network, settings: Settings, device: torch.device) -> bool:
    """Whether steps are compiled: on a GPU whose kernel takes flat tokens, unless told otherwise."""
    config = network.config
    if settings.compile == "no" or settings.shard or device.type != "cuda" or isinstance(config, RecurrentConfig):
        return False
    plain = config.kind != "encoder-decoder" and config.positions.kind not in ("relative", "alibi")
    flat = runs_flat(torch.bfloat16, config.head_width, device.index or 0) and settings.dtype != "fp32"
    return plain and flat


def steady_shape(
    tokens: int, most: int | None, lengths: Ints, longest: int, places: int | None = None
) -> tuple[Shape, int]:
    """One shape for every batch and what fills it up, and how many sequences a batch may have.

    Sequences that are all equally long make a rectangle, and so does what fills it up.
    """
    if int(lengths.min()) == longest and longest <= tokens:
        rows = min(tokens // longest, most or tokens)
        return Shape(rows * longest, rows, longest), rows
    most = most or max(4, int(1.5 * tokens / max(float(lengths.mean()), 1.0)))
    longest = max(longest, min(-(-longest // STEADY) * STEADY, places or tokens))
    filling = -(-tokens // longest)
    return Shape(tokens, -(-(most + filling) // 8) * 8, longest), most


def with_score(job: Job, data: Data, reading: Reading) -> Job:
    """The job with its dev score, where there are rows to score: of a sample where all would take long."""
    rows = np.linspace(0, len(data.dev) - 1, min(len(data.dev), job.task.sample or len(data.dev))).astype(int)
    some = replace(data, dev=[data.dev[row] for row in rows.tolist()])
    return replace(job, score=lambda: score_of(job, some, reading)) if data.dev else job


def score_of(job: Job, data: Data, reading: Reading) -> Scored:
    """The dev score of the network as it is."""
    device = next(job.network.parameters()).device
    run = runner(job.network, job.task, dtype=job.dtype)
    tokens = 65_536 if device.type == "cuda" else 8192
    return score(job.task, run, data.dev, reading, device=device, batch_tokens=tokens, seed=job.settings.seed)


def with_identity(job: Job, identity: Mapping[str, Any]) -> Job:
    return replace(job, identity=identity)


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a resumption must share, as JSON holds them."""
    import json

    named = {name: value for name, value in asdict(settings).items() if name not in FREE}
    found: dict[str, Any] = json.loads(json.dumps(named))
    return found
