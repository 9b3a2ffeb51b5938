"""What a training on labeled data consists of: the task, its initial model, and the sequences of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from regard.baselines import BASELINES, Baseline
from regard.baselines.ngram import Report
from regard.checkpoint.reading import preprocessing_of
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.token_store import tokenizer_hash
from regard.device import pick_device
from regard.errors import InputError, setting
from regard.tasks import task_class
from regard.tasks.joined_sentences import JoinedSentences
from regard.tasks.recipe import Recipe
from regard.tasks.task import Task
from regard.training.defaults.choose import NewTraining, with_recipe
from regard.training.defaults.recipes import DataSize, fill_from_recipe
from regard.training.engine.distillation import Distillation
from regard.training.engine.rdrop import check_rdrop
from regard.training.from_scratch.baseline_model import baseline_model, check_baseline
from regard.training.from_scratch.preset_model import preset_config
from regard.training.head_init.initializer import is_fitted, planned_contrastive, planned_similarity, weight_initializer
from regard.training.initial_model import InitialModel, initial_model
from regard.training.inputs.source import epoch_source, joins_records
from regard.training.inputs.start_lines import start_lines
from regard.training.load_data import LabeledData, vocabulary_texts
from regard.training.run import TrainingInputs
from regard.training.settings import Settings
from regard.training.validation import RecordValidation


def labeled_inputs(
    data: LabeledData,
    *,
    user_settings: Settings,
    start: str | Path | None,
    preset: str | None,
    tokenizer: str | Path | None,
    report: Report = lambda what, done, total: None,
    distillation: Distillation | None = None,
    initial_seed: int,
    ranks: int = 1,
) -> TrainingInputs:
    """The task that the data is for, its initial model, and the sequences of its records."""
    baseline, recipe, settings = _defaults(data, preset, user_settings, distillation, start=start, tokenizer=tokenizer)
    task = _task(data, settings, baseline)
    model, settings = _model_and_settings(
        task, data, settings, baseline, initial_seed, start=start, preset=preset, tokenizer=tokenizer, report=report
    )
    preprocessing = _preprocessing(model, settings)
    joined = joins_records(task, model, settings, distillation)
    source, examples = epoch_source(task, data, preprocessing, settings, distillation, joined=joined)
    rows, distilled = len(data.train), distillation is not None
    size = DataSize.of(examples.lengths, rows=rows if joined else None)
    training = NewTraining(task, model, baseline, size, rows, joined=joined, distilled=distilled, ranks=ranks)
    settings, recipe = with_recipe(settings, recipe, training)
    name = str(preset or start or "minilm") if baseline is None else baseline.from_model(start)
    initialize = weight_initializer(task, data.train, examples, preprocessing, model, baseline, settings, initial_seed)
    return TrainingInputs(
        task=task,
        model=model,
        source=source,
        size=size,
        data=data,
        rows=rows,
        settings=settings,
        recipe=recipe,
        identity=_identity(data, task, model, name, distillation),
        describe=lambda job: start_lines(data, user_settings, job, name, model, baseline),
        initialize=initialize,
        fitted=is_fitted(model, baseline, user_settings),
        details=lambda _: _details(data, settings, model, baseline),
        validation=RecordValidation(data.dev, preprocessing) if data.dev else None,
        max_tokens=source.max_tokens if isinstance(source, JoinedSentences) else None,
        distillation=distillation,
    )


def _preprocessing(model: InitialModel, settings: Settings) -> Preprocessing:
    return preprocessing_of(model.checkpoint, model.tokenizer, window=settings.window, overlap=settings.overlap)


def _defaults(
    data: LabeledData,
    preset: str | None,
    settings: Settings,
    distillation: Distillation | None,
    *,
    start: str | Path | None,
    tokenizer: str | Path | None,
) -> tuple[Baseline | None, Recipe, Settings]:
    """The baseline that the preset names, if any, the defaults of the task, and the settings that are known from them.

    The defaults are those of training from scratch, or of fine-tuning.
    """
    baseline = BASELINES.get(preset or "")
    if baseline is not None:
        check_baseline(baseline, data.task, settings, start=start, tokenizer=tokenizer)
    config = preset_config(None if baseline else preset, settings.model)
    gpu = pick_device(settings.device).type == "cuda"
    recipe = task_class(data.task).recipe(config, len(data.train), gpu=gpu)
    if distillation is not None:
        recipe = replace(recipe, rdrop=0.0)  # the teacher's probabilities are the second target
    return baseline, recipe, fill_from_recipe(settings, recipe, model_known=False)


def _model_and_settings(
    task: Task,
    data: LabeledData,
    settings: Settings,
    baseline: Baseline | None,
    seed: int,
    *,
    start: str | Path | None,
    preset: str | None,
    tokenizer: str | Path | None,
    report: Report,
) -> tuple[InitialModel, Settings]:
    """The initial model, initialized with this seed, and the settings with what depends on it."""
    if baseline is None:
        model = _initial_model(task, data, settings, seed, start=start, preset=preset, tokenizer=tokenizer)
        return model, settings
    if baseline.name != "probe":
        return baseline_model(baseline.name, task, data.train, start=start, seed=seed, report=report), settings
    settings = replace(settings, head_init="probe")
    return _initial_model(task, data, settings, seed, start=start, preset=None, tokenizer=tokenizer), settings


def _initial_model(
    task: Task,
    data: LabeledData,
    settings: Settings,
    seed: int,
    *,
    start: str | Path | None,
    preset: str | None,
    tokenizer: str | Path | None,
) -> InitialModel:
    return initial_model(
        task,
        start=start,
        preset=preset,
        tokenizer=tokenizer,
        **vocabulary_texts(data, settings),
        seed=seed,
        dropout=settings.dropout,
        prefix=settings.prefix,
        head_init=_head_init(task, settings),
        pooling=settings.pooling,
        rows=len(data.train) + (len(data.dev) if data.split_off else 0),
        model=settings.model,
    )


def _head_init(task: Task, settings: Settings) -> str:
    """As given, but no similarity is learned by a frozen encoder, or with FSDP: it needs the whole network on a GPU."""
    frozen = "encoder" in (settings.freeze or ())
    if task.name != "pair" or not (settings.fsdp or frozen):
        return settings.head_init
    if settings.head_init == "similarity":
        both = f"{setting('freeze' if frozen else 'fsdp')} and {setting('head_init', 'similarity')}"
        raise InputError(f"{both} were both given, but similarity is learned by a whole encoder. Leave one out.")
    return "random" if settings.head_init == "auto" else settings.head_init


def _task(data: LabeledData, settings: Settings, baseline: Baseline | None) -> Task:
    """The task with what it takes from the records: its labels. Rows split off for validation count too."""
    records = [*data.train, *data.dev] if data.split_off else data.train
    task = task_class(data.task)
    options: dict[str, Any] = {"class_balance": settings.class_balance, "label_smoothing": settings.label_smoothing}
    if settings.context is not None:
        if not task.uses_context:
            raise InputError(f"{setting('context')} was given, but the task is {data.task}; only tag takes it.")
        options["context"] = settings.context
    elif baseline is not None:
        options["context"] = 0  # a baseline reads each sentence alone
    fitted = task.from_records(records, **options)
    check_rdrop(fitted, settings.rdrop or 0.0)
    _check_explainable(fitted, settings)
    return fitted


def _check_explainable(task: Task, settings: Settings) -> None:
    """Raise InputError if words are to be masked for a task that is not about words."""
    if settings.explainable and not task.masks_words:
        raise InputError(
            f"{setting('explainable')} was given, but the task is {task.name}; it is for classify, pair, tag and "
            "answer. Leave it out."
        )


def _identity(
    data: LabeledData, task: Task, model: InitialModel, start: str, distillation: Distillation | None
) -> Mapping[str, Any]:
    """What a resumed run must share with the one that was stopped, besides its settings."""
    tokenizers = (model.tokenizer, model.tokenizer.target)
    teacher = {} if distillation is None else {"teacher": distillation.identity}
    return {
        "data": data.fingerprint,
        "start": start,
        "task": task.name,
        "tokenizer": [tokenizer_hash(tokenizer) for tokenizer in tokenizers if tokenizer is not None],
        **teacher,
    }


def _details(
    data: LabeledData, settings: Settings, model: InitialModel, baseline: Baseline | None
) -> Mapping[str, Any]:
    """What run.json says of the start of the training."""
    if baseline is not None:
        return {"preset": baseline.name}
    device = pick_device(settings.device)
    plans = {
        "contrastive": planned_contrastive(model, len(data.train), settings, device),
        "similarity": planned_similarity(model, len(data.train), device),
    }
    return {name: asdict(plan) for name, plan in plans.items() if plan is not None}
