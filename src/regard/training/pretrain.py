"""From plain text to a language model: `regard.pretrain`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.manifest import RUN
from regard.checkpoint.source import find_folder, from_preset
from regard.config import Config
from regard.data.batching.framing import Frame
from regard.data.corpus.store_files import building_folder, remove_store
from regard.data.corpus.text_source import OBJECTIVES, Objective, Stream, TextSource, split_corpus
from regard.data.corpus.token_store import Corpus, tokenizer_hash
from regard.data.corpus.word_starts import WordStarts
from regard.device import pick_device
from regard.errors import FolderError, InputError, did_you_mean, pluralize, setting
from regard.progress import Progress
from regard.tasks.bidirectional_lm import BidirectionalLM
from regard.tasks.causal import Causal
from regard.tasks.inference import RowSource, ScoreResult, network_runner
from regard.tasks.masked import Masked
from regard.tasks.recipe import Recipe, pretraining_recipe
from regard.tasks.task import Task
from regard.text.learn import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.training.defaults import DataSize, resolve_settings
from regard.training.engine.distributed import World, join_process_group, leave_process_group
from regard.training.engine.fsdp import unshard
from regard.training.engine.loop import fit
from regard.training.engine.lora import merge_lora
from regard.training.engine.schedule import warmup_steps
from regard.training.initial_model import (
    LEAST_PIECES,
    initial_model,
    new_heads,
    open_tokenizer,
    vocabulary_errors,
    vocabulary_of,
)
from regard.training.job import TrainingJob
from regard.training.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.plan import plan_job, prepare_network
from regard.training.resume.lock import claim, exclusive
from regard.training.resume.state import STATE
from regard.training.score_text import baseline, score_rows
from regard.training.settings import Settings
from regard.training.tensorboard import tensorboard_progress
from regard.training.train import TrainResult, kept, model_line
from regard.training.write_run import finish

WINDOW = 512  # most tokens of a sequence where nobody says
BYTES_A_PIECE = 40  # of text, for each piece of a vocabulary that is learned from it
SHORT = 1000  # tokens held out, below which it may be that none of them is hidden
LABELLED = ("label_smoothing", "class_balance", "prefix", "vocabularies")
# By objective: the kind of network it is for, the head that learns it, and what that says.
LEARNS = {
    "mlm": ("encoder", "masked", "hidden words"),
    "mlm+nsp": ("encoder", "next", "next sentences"),
    "causal": ("decoder", "language", "next words"),
    "two-sided": ("encoder", "sides", "the words on both sides"),
}


@dataclass(frozen=True)
class PretrainResult(TrainResult):
    """What a pretraining gave. `baseline` is what the counts of single words reach on the same held-out text."""

    baseline: dict[str, float] = field(default_factory=dict)
    new_heads: tuple[str, ...] = ()  # heads that the model to start from did not have, randomly initialized


@dataclass(frozen=True)
class TextData:
    """What is told of the text."""

    train: Stream
    dev: Stream | tuple[()]
    why: str
    split_off: bool
    fingerprint: str


@exclusive
def pretrain(
    files: Sequence[str | Path],
    *,
    out: str | Path,
    objective: Objective = "mlm",
    preset: str | None = None,
    tokenizer: str | Path | Tokenizer | None = None,
    start: str | Path | None = None,
    dev: Sequence[str | Path] | None = None,
    store: str | Path | None = None,
    mask_rate: float = 0.15,
    mask_unit: str = "token",
    encoding: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: OnTrainingEvent | None = None,
    **settings: Any,
) -> PretrainResult:
    """Train a language model on plain text, from nothing or going on from a model, and write it as a folder.

    files: text with a blank line between documents, plain, .gz or .xz.
    objective: mlm (hidden words), mlm+nsp (and next sentences, as BERT), causal (next words, as GPT), or two-sided
        (next words from each end of a text, as ELMo).
    preset: a shape to train from nothing, with `tokenizer`, or with a vocabulary learned from the files.
    start: or a model to go on from, with its own tokenizer: domain adaptation.
    dev: text to score on; else a share of the documents (`dev_fraction`) is held out.
    mask_unit: hide single tokens ("token"), all tokens of a word ("word"), or a few words in a row ("span").
    encoding: of the files, such as "cp1252"; recognized from their bytes if not given.
    store: where the tokenized text is kept for other trainings; else it lies beside `out` until the training has ended.
    settings: see `regard.training.settings.Settings`; from nothing there is no dropout unless it is asked for.
    """
    chosen, began = Settings.of(settings), time.monotonic()
    _check_settings(chosen)
    if preset is not None and chosen.dropout is None:
        chosen = replace(chosen, dropout=0.0)  # text that is read a few times is not learned by heart
    _check(objective, preset, start, tokenizer)
    wanted = pick_device(chosen.device)
    folder, place = Path(out).expanduser(), Path(store or f"{out}.corpus").expanduser()
    early = resume and place.is_dir() and not any((folder / name).exists() for name in (STATE, "config.json"))
    resume = resume and not early  # what was stopped before a state was saved begins again, with the text it has read
    folder = claim(folder, resume=resume, overwrite=overwrite or early)
    if resume and (folder / RUN).exists() and not (folder / STATE).exists():
        raise FolderError(f"{folder} cannot be resumed: its training ended. Begin again with --overwrite.")
    world, device = join_process_group(wanted)
    words = _words(files, preset, start, tokenizer, objective, encoding)
    task: Task = BidirectionalLM() if objective == "two-sided" else Causal()
    hides = objective in ("mlm", "mlm+nsp")
    if hides:
        unit: Any = mask_unit
        task = Masked.of(words, follows=objective == "mlm+nsp", rate=mask_rate, unit=unit)
    checkpoint, words, pretrained = initial_model(
        task, start=start, preset=preset, tokenizer=words, texts=(), seed=chosen.seed, dropout=chosen.dropout
    )
    _check_network(checkpoint.family, checkpoint.config, objective)
    added = new_heads(checkpoint)
    texts = _texts(
        files, dev, words, objective, place, chosen, world, overwrite=overwrite, progress=progress, encoding=encoding
    )
    window = chosen.window or WINDOW
    longest = min(window, checkpoint.config.max_tokens or window)
    frame = Frame.of(words)
    starts = WordStarts.from_tokenizer(words) if mask_unit == "word" and hides else None
    source = TextSource(texts.train, frame, objective, max_tokens=longest, seed=chosen.seed, starts=starts)
    held = None
    if isinstance(texts.dev, Stream):
        held = TextSource(texts.dev, frame, objective, max_tokens=longest, seed=chosen.seed, starts=starts).epoch(0)
    network = checkpoint.network.to(device)
    lengths = source.epoch(0).lengths
    gpu = device.type == "cuda"
    chosen = resolve_settings(
        replace(chosen, window=longest),
        DataSize.of(lengths),
        checkpoint.config,
        pretrained=pretrained,
        gpu=gpu,
        recipe=Recipe() if pretrained else pretraining_recipe(checkpoint.config),
    )
    prepare_network(network, chosen)
    if chosen.tensorboard and world.is_main_process:
        progress = tensorboard_progress(folder, progress)
    job = plan_job(
        network, task, source, chosen, folder, longest=longest, world=world, resume=resume, progress=progress
    )
    identity: dict[str, Any] = {"data": texts.fingerprint, "start": str(preset or start), "objective": objective}
    identity |= {"task": task.settings(), "tokenizer": [tokenizer_hash(words)], **kept(chosen)}
    job = replace(job, identity=identity, score=None if held is None else _measure(job, held))
    if held is not None and held.lengths.sum() < SHORT:
        _check_held(job)
    if progress is not None and world.is_main_process:
        progress(_beginning(texts, job, objective, len(lengths), pretrained=pretrained, added=added))
    done = fit(job)
    if chosen.lora.rank:
        merge_lora(network)
    final = None if job.score is None else job.score()
    usual: dict[str, float] = {}
    if held is not None and isinstance(texts.dev, Stream):
        usual = baseline(texts.train, texts.dev, held, vocabulary=checkpoint.config.vocabulary)
        usual = {name: usual[name] for name in usual if final is not None and name in final.scores}
    unshard(network)
    if world.is_main_process:
        more = {"pretrained": pretrained, "objective": objective, "baseline": usual, "new_heads": added}
        finish(folder, checkpoint, words, task, job, done, final, texts, identity, more=more)
        if store is None:
            _remove_texts(place)
    leave_process_group(world)
    return PretrainResult.of(task, len(lengths), final, done, folder, began, baseline=usual, new_heads=tuple(added))


def _remove_texts(place: Path) -> None:
    """Remove the tokenized text, and its folder unless something else is in it."""
    for name in ("train", "dev"):
        remove_store(place / name)
        shutil.rmtree(building_folder(place / name), ignore_errors=True)
    with contextlib.suppress(OSError):
        place.rmdir()


def _check(objective: str, preset: str | None, start: Any, tokenizer: Any) -> None:
    if objective not in OBJECTIVES:
        raise InputError(f'{setting("objective")} "{objective}" is not known.{did_you_mean(objective, OBJECTIVES)}')
    if (preset is None) == (start is None):
        given = "neither" if preset is None else "both"
        raise InputError(
            f"{given} of {setting('preset')} and {setting('start')} was given; give one of them: a shape to train from "
            f"nothing ({setting('preset', 'bert-tiny')}), or a model to go on from ({setting('start', 'minilm')})."
        )
    if start is not None and tokenizer is not None:
        raise InputError(f"{start} has a tokenizer of its own; leave {setting('tokenizer')} out, or name a preset.")


def _check_settings(settings: Settings) -> None:
    """Settings that only labelled data gives a meaning."""
    for name in LABELLED:
        if getattr(settings, name) != getattr(Settings(), name):
            raise InputError(f"{setting(name)} is for regard train: a pretraining has no use for it. Leave it out.")


def _check_network(family: str, config: Config, objective: str) -> None:
    """Whether this kind of network can learn that way, and its folders can hold what it learns."""
    there, (wanted, head, what) = family_for(family, config).heads, LEARNS[objective]
    can = [name for name, (kind, needed, _) in LEARNS.items() if kind == config.kind and needed in there]
    fix = f"Use objective {can[0]}." if can else "It has no pretraining here."
    if config.kind != wanted:
        raise InputError(
            f'{setting("objective")} "{objective}" is for networks of kind {wanted}, but this one ({family}) is of '
            f"kind {config.kind}. {fix}"
        )
    if head not in there:
        raise InputError(f"models of the family {family} have no head for {what}. {fix}")


def _words(
    files: Sequence[str | Path],
    preset: str | None,
    start: Any,
    tokenizer: Any,
    objective: str,
    encoding: str | None,
) -> Tokenizer:
    """The tokenizer that was given, the one of the model, or one learned from the files."""
    if start is not None:
        return open_tokenizer(find_folder(start))
    assert preset is not None
    shape = from_preset(preset, weights=False)
    _check_network(shape.family, shape.config, objective)  # before a vocabulary is learned
    if tokenizer is not None:
        return _around(open_tokenizer(tokenizer), objective)
    vocabulary = vocabulary_of(preset)
    files = [files] if isinstance(files, str | Path) else files
    room = sum(Path(file).stat().st_size for file in files if Path(file).is_file()) // BYTES_A_PIECE
    with vocabulary_errors(preset):
        size = min(vocabulary.size, max(room, LEAST_PIECES))
        kind, special_tokens = vocabulary.kind, vocabulary.special_tokens
        learned = train_tokenizer(files, kind=kind, size=size, special_tokens=special_tokens, encoding=encoding)
        return _around(learned, objective)


def _around(words: Tokenizer, objective: str) -> Tokenizer:
    """A decoder reads text as it stands, up to an end token; it never learns what else would be put around one."""
    before, after = words.surrounding_ids
    known = not before and after in ((), (words.eos,))
    return words if known or objective != "causal" else words.without_special_tokens()


def _texts(
    files: Sequence[str | Path],
    dev: Sequence[str | Path] | None,
    words: Tokenizer,
    objective: Objective,
    place: Path,
    settings: Settings,
    world: World,
    *,
    overwrite: bool,
    progress: OnTrainingEvent | None,
    encoding: str | None,
) -> TextData:
    """The text as tokens, on both sides."""

    def report(now: Progress) -> None:
        if progress is not None:
            progress(TrainingEvent("read", now.done, now.total, now.values))

    def build(paths: Sequence[str | Path], name: str) -> Corpus:
        place.mkdir(parents=True, exist_ok=True)
        pairs, end = objective == "mlm+nsp", _end(words) if objective == "causal" else None
        if not world.is_main_process:
            world.barrier()
        fresh = overwrite and world.is_main_process
        found = Corpus.build(
            paths,
            words,
            place / name,
            sentences=pairs,
            end=end,
            encoding=encoding,
            progress=report if world.is_main_process else None,
            overwrite=fresh,
        )
        if world.is_main_process:
            world.barrier()
        return found

    corpus = build(files, "train")
    share = 0.0 if dev is not None else settings.dev_fraction
    learned, held = split_corpus(
        corpus, fraction=share, seed=settings.seed, min_documents=2 if objective == "mlm+nsp" else 1
    )
    known = [corpus.index["files"], corpus.index["tokenizer"]]
    if dev is not None:
        other = build([dev] if isinstance(dev, str | Path) else dev, "dev")
        held = split_corpus(other, fraction=0.0)[0]
        known.append(other.index["files"])
    text = hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=16).hexdigest()
    why = f"plain text: {pluralize(len(corpus), 'document')}, {pluralize(int(corpus.bounds[-1]), 'token')}"
    return TextData(learned, () if held is None else held, why, dev is None, text)


def _end(words: Tokenizer) -> int | None:
    """What stands after a document: the token for it, or, in a vocabulary without one, the blank line itself."""
    if words.eos is not None:
        return words.eos
    (line,) = words.ids_batch(["\n"], special=False)
    return line[0] if len(line) == 1 and line[0] != words.unk else None


def _measure(job: TrainingJob, rows: RowSource) -> Any:
    """The score on held-out text, as the loop asks for it."""
    device = next(job.network.parameters()).device
    tokens = 65_536 if device.type == "cuda" else 8192

    def measure() -> ScoreResult:
        run = network_runner(job.network, job.task, dtype=job.dtype)
        return score_rows(job.task, run, rows, device=device, batch_tokens=tokens, seed=job.settings.seed)

    return measure


def _check_held(job: TrainingJob) -> None:
    """Before an epoch is spent: whether what was held out can be scored at all."""
    assert job.score is not None
    job.network.eval()
    try:
        job.score()
    except InputError as error:
        raise InputError(
            "the text that is held out is too short to be scored: no word of it came to be asked for. Give more text, "
            f"or {setting('dev_fraction', 0)} for no scores."
        ) from error


def _beginning(
    texts: TextData, job: TrainingJob, objective: str, sequences: int, *, pretrained: bool, added: Sequence[str]
) -> TrainingEvent:
    """What is read, and what was chosen, in words."""
    chosen = job.settings
    held = f"{pluralize(len(texts.dev), 'document')} held out" if len(texts.dev) else "none held out"
    warmup = warmup_steps(job.steps, chosen.warmup or 0.0)
    size = f"{chosen.batch_tokens:,}"
    said = [
        f"data: {texts.why}; {held}",
        model_line(job, job.identity["start"], pretrained=pretrained),
        f"objective: {objective}, {pluralize(sequences, 'sequence')} of up to {chosen.window} tokens",
        f"chosen: lr {chosen.lr:.2g}, batch_tokens {size}: {pluralize(job.steps, 'step')}, {warmup:,} of them warm-up",
    ]
    if added:
        said.insert(2, _about_new_heads(added, job))
    return TrainingEvent("begin", 0, job.steps, {"said": said, "new_heads": list(added)})


def _about_new_heads(added: Sequence[str], job: TrainingJob) -> str:
    """That heads are new, and what this does to the first scores."""
    names, pieces = " and ".join(added), job.network.config.vocabulary
    return (
        f"head: {job.identity['start']} has no {names}, so it starts randomly initialized. The first perplexity is "
        f"therefore no measure of the model: the head guesses among {pieces:,} pieces, and may do worse than chance "
        "(a perplexity above that number). It falls as the head learns."
    )
