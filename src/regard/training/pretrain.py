"""From plain text to a language model: `regard.pretrain`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from regard.checkpoint.manifest import RUN
from regard.config import NgramConfig
from regard.data.batching.framing import Frame
from regard.data.corpus.masking import Unit
from regard.data.corpus.text_source import OBJECTIVES, Objective, Stream, TextSource
from regard.data.corpus.token_store import tokenizer_hash
from regard.data.corpus.word_starts import WordStarts
from regard.device import pick_device
from regard.errors import InputError, did_you_mean, pluralize, setting
from regard.random_state import preserved_random_state
from regard.tasks.inference import ScoreResult
from regard.tasks.language.bidirectional_lm import BidirectionalLM
from regard.tasks.language.causal import Causal
from regard.tasks.language.masked import Masked
from regard.tasks.recipe import Recipe, pretraining_recipe
from regard.tasks.task import Task
from regard.text.tokenizer import Tokenizer
from regard.training.defaults.recipes import DataSize
from regard.training.engine.schedule import warmup_steps
from regard.training.from_scratch.ngram_language import (
    ORDERS,
    VOCABULARY_PRESET,
    check_ngram_settings,
    ngram_language_model,
)
from regard.training.from_scratch.preset_model import check_model_settings
from regard.training.head_init.new_head import new_heads
from regard.training.initial_model import InitialModel, initial_model
from regard.training.job import TrainingJob
from regard.training.load_text import TextData, TextFiles, check_objective, load_text, text_tokenizer
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.pipeline import model_line, run_pipeline
from regard.training.result import PretrainResult
from regard.training.resume.lock import claim, exclusive
from regard.training.resume.state import STATE
from regard.training.run import RunContext, TrainingInputs
from regard.training.settings import Settings, TrainSettings
from regard.training.validation import TextValidation, unigram_baseline

WINDOW = 512  # maximum number of tokens of a sequence if none is given
LABEL_SETTINGS = (
    *("label_smoothing", "class_balance", "head_init", "pooling", "prefix", "vocabularies", "context", "rdrop"),
    "rdrop_start",
    "repeats",
    "explainable",
    *("beams", "refit", "overlap"),
)


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
    mask_unit: Unit = "token",
    average: float = 0.0,
    encoding: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: OnTrainingEvent | None = None,
    **settings: Unpack[TrainSettings],
) -> PretrainResult:
    """Train a language model on plain text, from scratch or from a pretrained model, and write it as a folder.

    files: text with a blank line between documents, plain, .gz or .xz.
    out: the folder to write.
    objective: mlm (masked tokens), mlm+nsp (and next sentences, as BERT), causal (next tokens, as GPT), or
        bidirectional (next and previous tokens, as ELMo).
    preset: the name of a network to train from scratch, or of a baseline for causal: bigram, trigram, ngram (5 words).
    tokenizer: its tokenizer; learned from the files if not given.
    start: or a model to train further, with its own tokenizer (domain adaptation).
    dev: text to score on; if not given, a fraction of the documents (`dev_fraction`) is split off.
    mask_rate: fraction of the tokens that are masked.
    mask_unit: mask single tokens ("token"), all tokens of a word ("word"), or a few words in a row ("span").
    average: fraction of the steps at the end whose weights are averaged; the mean is scored and written.
    encoding: of the files, such as "cp1252"; recognized from their bytes if not given.
    store: a folder for the tokenized text, to be used by other trainings; a temporary one next to `out` if not given.
    resume: continue a run with the same text and settings that was stopped or killed. Of one that has ended the result
        is returned.
    progress: called with a `TrainingEvent` for the start, every few steps and every score.
    settings: see `regard.Settings`; from scratch there is no dropout unless it is given.

    Example: `regard.pretrain(["corpus.txt"], out="runs/lm", objective="causal", preset="tiny-gpt2")`.
    """
    user_settings = _pretraining_settings(settings, preset)
    if not 0 <= average <= 1:
        raise InputError(f"{setting('average')} is {average:g}, expected a fraction from 0 to 1.")
    _check_model(objective, preset, start, tokenizer)
    _check_settings(preset, objective, user_settings)
    device = pick_device(user_settings.device)
    text_folder = Path(store or f"{out}.corpus").expanduser()
    text_files = TextFiles(files, dev, objective, text_folder, encoding=encoding, overwrite=overwrite)
    folder, resume = _claim(Path(out).expanduser(), text_files.store, resume=resume, overwrite=overwrite)
    with preserved_random_state(device), contextlib.ExitStack() as stack:
        context = RunContext.join(folder, device, resume=resume, progress=progress)
        stack.enter_context(_store_of_run(text_files, context, keep=store is not None))
        shape = VOCABULARY_PRESET if preset in ORDERS else preset
        words = text_tokenizer(text_files, preset=shape, start=start, tokenizer=tokenizer)
        task = objective_task(objective, words, mask_rate=mask_rate, mask_unit=mask_unit)
        if preset in ORDERS:
            texts = load_text(text_files, words, user_settings, context)
            model = ngram_language_model(preset, words, texts.train)
        else:
            model = _initial_model(task, words, user_settings, objective, start=start, preset=preset)
            texts = load_text(text_files, words, user_settings, context)
        inputs = _pretraining_inputs(texts, task, model, user_settings, objective, str(preset or start))
        return run_pipeline(context, _with_average(inputs, average), PretrainResult)


def _pretraining_settings(user_settings: Mapping[str, Any], preset: str | None) -> Settings:
    """The settings of a pretraining; those that need labels are refused."""
    settings = Settings.of(user_settings)
    for name in LABEL_SETTINGS:
        if getattr(settings, name) != getattr(Settings(), name):
            raise InputError(f"{setting(name)} is for regard train: a pretraining has no use for it. Leave it out.")
    if preset is not None and settings.dropout is None:
        return replace(settings, dropout=0.0)  # text that is read a few times is not overfitted
    return settings


def _check_model(objective: str, preset: str | None, start: Any, tokenizer: Any) -> None:
    """Whether there is one model to start from, and an objective that exists."""
    if objective not in OBJECTIVES:
        raise InputError(f'{setting("objective")} "{objective}" is not known.{did_you_mean(objective, OBJECTIVES)}')
    if (preset is None) == (start is None):
        which = "neither" if preset is None else "both"
        raise InputError(
            f"{which} of {setting('preset')} and {setting('start')} was given; give one of them: a network to train "
            f"from scratch ({setting('preset', 'bert-tiny')}), or a model to train further "
            f"({setting('start', 'minilm')})."
        )
    if start is not None and tokenizer is not None:
        raise InputError(f"{start} has its own tokenizer; leave {setting('tokenizer')} out, or name a preset.")


def _check_settings(preset: str | None, objective: str, settings: Settings) -> None:
    """Whether the settings fit the model that is trained from scratch."""
    if preset in ORDERS:
        check_ngram_settings(preset, objective, settings)
    else:
        check_model_settings(preset, settings.model)


def _claim(folder: Path, store: Path, *, resume: bool, overwrite: bool) -> tuple[Path, bool]:
    """The folder to write, and whether there is a state to resume from.

    A run that was stopped before its first state was saved starts again, with the text it has tokenized.
    """
    has_state = any((folder / name).exists() for name in (STATE, "config.json"))
    restart = resume and store.is_dir() and not has_state
    resume = resume and not restart
    return claim(folder, resume=resume, overwrite=overwrite or restart), resume


@contextlib.contextmanager
def _store_of_run(text_files: TextFiles, context: RunContext, *, keep: bool) -> Iterator[None]:
    """Remove the tokenized text after a run, unless it is to be kept or a stopped run needs it to resume."""
    had_ended = context.resume and (context.folder / RUN).exists() and not (context.folder / STATE).exists()
    try:
        yield
    except BaseException:
        keep = keep or not had_ended
        raise
    finally:
        if not keep and context.world.is_main_process:
            text_files.remove_store()


def objective_task(objective: str, tokenizer: Tokenizer, *, mask_rate: float, mask_unit: Unit) -> Task:
    """The task of an objective."""
    if objective == "bidirectional":
        return BidirectionalLM()
    if objective == "causal":
        return Causal()
    return Masked.of(tokenizer, follows=objective == "mlm+nsp", rate=mask_rate, unit=mask_unit)


def _initial_model(
    task: Task,
    tokenizer: Tokenizer,
    user_settings: Settings,
    objective: str,
    *,
    start: str | Path | None,
    preset: str | None,
) -> InitialModel:
    """The model to start from, which must be one that can learn the objective."""
    model = initial_model(
        task,
        start=start,
        preset=preset,
        tokenizer=tokenizer,
        texts=(),
        seed=user_settings.seed,
        dropout=user_settings.dropout,
        model=user_settings.model,
    )
    check_objective(model.checkpoint.family, model.checkpoint.config, objective)
    return model


def _pretraining_inputs(
    texts: TextData, task: Task, model: InitialModel, user_settings: Settings, objective: Objective, start: str
) -> TrainingInputs:
    """The sequences of the text, for the pipeline that all trainings share."""
    config = model.checkpoint.config
    window = user_settings.window or WINDOW
    max_tokens = min(window, config.max_tokens or window)
    sequences = _Sequences(task, model.tokenizer, objective, max_tokens, user_settings.seed)
    source = sequences.of(texts.train)
    validation = None
    if isinstance(texts.dev, Stream):
        validation = TextValidation(sequences.of(texts.dev).epoch(0))
    lengths = source.epoch(0).lengths
    added = new_heads(model.checkpoint)

    def details(scores: ScoreResult | None) -> Mapping[str, Any]:
        baseline: dict[str, float] = {}
        if scores is not None and validation is not None and isinstance(texts.dev, Stream):
            baseline = unigram_baseline(texts.train, texts.dev, validation.rows, vocabulary=config.vocabulary)
            baseline = {name: value for name, value in baseline.items() if name in scores.scores}
        return {"objective": objective, "sequences": len(lengths), "baseline": baseline}

    return TrainingInputs(
        task=task,
        model=model,
        source=source,
        size=DataSize.of(lengths),
        data=texts,
        rows=len(lengths),
        settings=replace(user_settings, window=max_tokens),
        recipe=Recipe() if model.pretrained else pretraining_recipe(config),
        identity={
            "data": texts.fingerprint,
            "start": start,
            "objective": objective,
            "task": task.settings(),
            "tokenizer": [tokenizer_hash(model.tokenizer)],
        },
        describe=lambda job: start_lines(texts, job, objective, len(lengths), pretrained=model.pretrained, added=added),
        validation=validation,
        max_tokens=max_tokens,
        details=details,
        initialize=(lambda _: None) if isinstance(config, NgramConfig) else None,  # it is counted already
        fitted=isinstance(config, NgramConfig),
    )


def _with_average(inputs: TrainingInputs, average: float) -> TrainingInputs:
    """The inputs of a training whose weights are averaged over this fraction of the steps at the end."""

    def details(scores: ScoreResult | None) -> Mapping[str, Any]:
        return {**inputs.details(scores), "average": average}

    return replace(inputs, average=average, identity={**inputs.identity, "average": average}, details=details)


@dataclass(frozen=True)
class _Sequences:
    """How a stream of tokens becomes the sequences of an objective."""

    task: Task
    tokenizer: Tokenizer
    objective: Objective
    max_tokens: int
    seed: int

    def of(self, stream: Stream) -> TextSource:
        whole_words = isinstance(self.task, Masked) and self.task.masks.unit == "word"
        starts = WordStarts.from_tokenizer(self.tokenizer) if whole_words else None
        frame = Frame.of(self.tokenizer)
        return TextSource(stream, frame, self.objective, max_tokens=self.max_tokens, seed=self.seed, starts=starts)


def start_lines(
    texts: TextData, job: TrainingJob, objective: str, sequences: int, *, pretrained: bool, added: Sequence[str]
) -> list[str]:
    """What the text is, and which settings were chosen, in words."""
    settings = job.settings
    dev = pluralize(len(texts.dev), "validation document") if len(texts.dev) else "no validation documents"
    steps = f"{pluralize(job.steps, 'step')}, {warmup_steps(job.steps, settings.warmup or 0.0):,} of them warm-up"
    lines = [
        f"data: {texts.reason}; {dev}",
        model_line(job, job.identity["start"], pretrained=pretrained),
        f"objective: {objective}, {pluralize(sequences, 'sequence')} of up to {settings.window} tokens",
        f"chosen: lr {settings.lr:.2g}, batch_tokens {settings.batch_tokens:,}: {steps}",
    ]
    if added:
        lines.insert(2, _new_heads_line(added, job))
    return lines


def _new_heads_line(added: Sequence[str], job: TrainingJob) -> str:
    """Which heads are new, and what this does to the first scores."""
    return (
        f"head: {job.identity['start']} has no {' and '.join(added)}, so it starts randomly initialized. The first "
        "perplexity is therefore no measure of the model: a random head over a vocabulary of "
        f"{job.network.config.vocabulary:,} tokens may do worse than chance (a perplexity above that number). "
        "It falls as the head learns."
    )
