"""From data to a model folder: `regard.train`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from regard.checkpoint.files import read_json
from regard.checkpoint.manifest import RUN
from regard.checkpoint.reading import preprocessing_of
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.token_store import tokenizer_hash
from regard.data.names import Columns
from regard.data.records import Record
from regard.device import pick_device
from regard.errors import FolderError, pluralize
from regard.metrics.confidence import Score
from regard.tasks import task_class
from regard.tasks.inference import CHUNK, ScoreResult, network_runner, score_records
from regard.tasks.task import Task
from regard.training.defaults import DataSize, chosen_settings, fill_from_recipe, resolve_settings
from regard.training.engine.distributed import join_process_group, leave_process_group
from regard.training.engine.fsdp import unshard
from regard.training.engine.loop import fit
from regard.training.engine.lora import merge_lora
from regard.training.engine.sampling import balanced_source
from regard.training.initial_model import initial_model, new_heads, preset_config
from regard.training.job import BatchSource, FitResult, TrainingJob
from regard.training.load_data import LabeledData, Where, load_data, vocabulary_texts
from regard.training.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.plan import plan_job, prepare_network
from regard.training.resume.lock import claim, exclusive
from regard.training.resume.state import POSITION, STATE
from regard.training.settings import Settings
from regard.training.tensorboard import tensorboard_progress
from regard.training.write_run import finish

# Settings that may differ between a run and its resumption.
FREE = ("log_every", "save_every", "device", "micro_batch_tokens", "patience", "tensorboard")


@dataclass(frozen=True)
class TrainResult:
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
    tokens_per_second: float | None = None  # of the steps but the first, without compiling, scoring and saving

    def json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(
        cls, task: Task, rows: int, final: ScoreResult | None, done: FitResult, folder: Path, began: float, **more: Any
    ) -> Self:
        """As it came out; `began` by the monotonic clock."""
        return cls(
            task=task.name,
            rows=rows,
            scores={} if final is None else final.scores,
            seconds=round(time.monotonic() - began, 3),
            folder=str(folder),
            steps=done.steps,
            tokens=done.tokens,
            skipped=done.skipped,
            stopped_early=done.stopped_early,
            tokens_per_second=done.tokens_per_second,
            **more,
        )


@exclusive
def train(
    data: Where | LabeledData,
    *,
    out: str | Path,
    start: str | Path | None = None,
    preset: str | None = None,
    tokenizer: str | Path | None = None,
    dev: Where | None = None,
    task: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    skip_bad: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: OnTrainingEvent | None = None,
    **settings: Any,
) -> TrainResult:
    """Train a model on labelled data and write it as a folder that transformers opens too.

    data: a path or several, a folder, a glob, "-"; rows in memory, as dicts, a dict of columns, a data frame, a pyarrow
        table, a `datasets.Dataset` or `DatasetDict`; or what `regard.training.load_data.load_data` has read already.
    start: a model folder, minilm, or a hub id to fine-tune; or `preset`, a shape to train from nothing.
    dev: rows to score on; the folder's own valid split, or a tenth of the data, where none is given.
    encoding: of the files, such as "cp1252"; UTF-8 unless their bytes show another one, which is reported.
    task: read from the data where it is not told, and so is what `labels` are (single, class, multi, number).
    resume: go on where a run of the same data and settings was stopped or killed; begin it where it had not begun,
        and give its result where it had ended.
    settings: see `regard.training.settings.Settings`.
    """
    asked = chosen = Settings.of(settings)
    wanted = pick_device(chosen.device)
    folder = claim(Path(out).expanduser(), resume=resume, overwrite=overwrite)
    began = time.monotonic()
    found = load_data(
        data,
        dev=dev,
        task=task,
        columns=columns,
        encoding=encoding,
        labels=labels,
        dev_fraction=chosen.dev_fraction,
        seed=chosen.seed,
        skip_bad=skip_bad,
    )
    known = [*found.train, *found.dev] if found.split_off else found.train
    kind = task_class(found.task)
    recipe = kind.recipe(preset_config(preset), len(found.train))
    chosen = fill_from_recipe(chosen, recipe)
    work = kind.from_records(known, class_balance=chosen.class_balance, label_smoothing=chosen.label_smoothing)
    checkpoint, words, pretrained = initial_model(
        work,
        start=start,
        preset=preset,
        tokenizer=tokenizer,
        **vocabulary_texts(found, chosen),
        seed=chosen.seed,
        dropout=chosen.dropout,
        prefix=chosen.prefix,
    )
    world, device = join_process_group(wanted)
    network = checkpoint.network.to(device)
    preprocessing = preprocessing_of(checkpoint, words, window=chosen.window, overlap=chosen.overlap)
    examples = work.examples(found.train, preprocessing, labelled=True)
    check_rows(work, found.dev, preprocessing)
    gpu = device.type == "cuda"
    size = DataSize.of(examples.lengths)
    chosen = resolve_settings(chosen, size, checkpoint.config, pretrained=pretrained, gpu=gpu, recipe=recipe)
    prepare_network(network, chosen)
    if chosen.tensorboard and world.is_main_process:
        progress = tensorboard_progress(folder, progress)
    source: BatchSource = balanced_source(examples, chosen.seed) if chosen.class_balance == "sampling" else examples
    job = plan_job(network, work, source, chosen, folder, world=world, resume=resume, progress=progress)
    job = with_score(job, found, preprocessing)
    identity = {
        "data": found.fingerprint,
        "start": str(preset or start or "minilm"),
        "task": work.name,
        "tokenizer": [tokenizer_hash(one) for one in (words, words.target) if one is not None],
        **kept(chosen),
    }
    if resume and (before := ended(folder, identity)) is not None:
        leave_process_group(world)
        return before
    if progress is not None and world.is_main_process:
        progress(beginning(found, asked, job, identity["start"], pretrained=pretrained))
    done = fit(replace(job, identity=identity))
    if chosen.lora.rank:
        merge_lora(network)
    final = score_of(job, found, preprocessing) if found.dev else None
    if final is not None and (tuned := work.tuned(final.meter)) != work:
        work = tuned
        final = score_of(replace(job, task=tuned), found, preprocessing)
    unshard(network)
    if world.is_main_process:
        more = {"pretrained": pretrained, "new_heads": new_heads(checkpoint)}
        finish(folder, checkpoint, words, work, job, done, final, found, identity, more=more)
    leave_process_group(world)
    return TrainResult.of(work, len(found.train), final, done, folder, began)


def check_rows(task: Task, records: Sequence[Record], preprocessing: Preprocessing) -> None:
    """Whether every row can be scored, before hours are spent: a label the training has not seen is found here."""
    for start in range(0, len(records), CHUNK):
        task.examples(records[start : start + CHUNK], preprocessing, labelled=True)


def beginning(data: LabeledData, asked: Settings, job: TrainingJob, start: str, *, pretrained: bool) -> TrainingEvent:
    """What was recognised, and what was chosen, in words."""
    chosen, source = job.settings, "split off from them" if data.split_off else "given"
    rows = f"{pluralize(len(data.train), 'row')} to learn from"
    rows += f", {len(data.dev):,} to score on, {source}" if data.dev else ", none to score on"
    said = [f"data: {data.why}", f"rows: {rows}", *(f"hint: {hint}" for hint in data.hints)]
    said.append(model_line(job, start, pretrained=pretrained))
    own = chosen_settings(asked, chosen)
    if own:
        said.append(f"chosen: {', '.join(own)}: {pluralize(job.steps, 'step')}")
    return TrainingEvent("begin", 0, job.steps, {"said": said})


def model_line(job: TrainingJob, start: str, *, pretrained: bool) -> str:
    """The model a training begins with, in words."""
    weights = sum(parameter.numel() for parameter in job.network.parameters())
    untrained = "" if pretrained else ", untrained (randomly initialized)"
    return f"model: {start}, {weights:,} parameters, on {next(job.network.parameters()).device}{untrained}"


def ended(folder: Path, identity: Mapping[str, Any]) -> TrainResult | None:
    """What the training in the folder gave, where it has come to its end."""
    if (folder / STATE / POSITION).exists() or not (folder / RUN).exists():
        return None
    run = read_json(folder, RUN)
    try:
        same = {name: run[name] for name in ("start", "task", "tokenizer")}
        same |= {"data": run["data"]["hash"], **run["settings"]}
        done, scores = run["done"], {name: Score(**held) for name, held in run["scores"].items()}
        if any(same[name] != value for name, value in identity.items()):
            raise FolderError(
                f"{folder} cannot be resumed: its training ended, and nothing is left to resume; it had other settings "
                "or data. Begin again with --overwrite, or name a new folder."
            )
        counts = (done["steps"], done["tokens"], done["skipped"], done["stopped_early"], done.get("tokens_per_second"))
        return TrainResult(run["task"], run["data"]["train_rows"], scores, done["seconds"], str(folder), *counts)
    except (KeyError, TypeError) as error:
        raise FolderError(f"{folder / RUN} is not what a training writes. Begin again with --overwrite.") from error


def with_score(job: TrainingJob, data: LabeledData, preprocessing: Preprocessing) -> TrainingJob:
    """The job with its dev score, where there are rows to score: of a sample where all would take long."""
    rows = np.linspace(0, len(data.dev) - 1, min(len(data.dev), job.task.max_dev_rows or len(data.dev))).astype(int)
    some = replace(data, dev=[data.dev[row] for row in rows.tolist()])
    return replace(job, score=lambda: score_of(job, some, preprocessing)) if data.dev else job


def score_of(job: TrainingJob, data: LabeledData, preprocessing: Preprocessing) -> ScoreResult:
    """The dev score of the network as it is."""
    device = next(job.network.parameters()).device
    run = network_runner(job.network, job.task, dtype=job.dtype)
    tokens = 65_536 if device.type == "cuda" else 8192
    return score_records(
        job.task, run, data.dev, preprocessing, device=device, batch_tokens=tokens, seed=job.settings.seed
    )


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a resumption must share, as JSON holds them."""
    named = {name: value for name, value in asdict(settings).items() if name not in FREE}
    found: dict[str, Any] = json.loads(json.dumps(named))
    return found
