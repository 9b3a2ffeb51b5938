"""From labeled data to a model folder: `regard.train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import torch

from regard.baselines import BASELINES, Baseline
from regard.baselines.ngram import Report
from regard.checkpoint.reading import preprocessing_of
from regard.data.batching.bpe_dropout import BpeDropoutSource
from regard.data.batching.examples import Examples
from regard.data.batching.masked_words import MaskedWordsSource
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.token_store import tokenizer_hash
from regard.data.schema.columns import Columns
from regard.device import pick_device
from regard.errors import InputError, pluralize, setting
from regard.random_state import preserved_random_state
from regard.tasks import task_class
from regard.tasks.joined_sentences import JoinedSentences
from regard.tasks.recipe import Recipe
from regard.tasks.task import Task
from regard.text.bpe_dropout import MarkingTokenizer
from regard.training.defaults.choose import NewTraining, with_recipe
from regard.training.defaults.explain import SettingReason, explain_settings
from regard.training.defaults.recipes import (
    MODEL_SETTINGS,
    DataSize,
    chosen_settings,
    default_refit,
    fill_from_recipe,
    resolve_settings,
    without_steps,
)
from regard.training.engine.distillation import Distillation
from regard.training.engine.optimizer import frozen_parameters
from regard.training.engine.rdrop import check_rdrop
from regard.training.engine.sampling import balanced_source
from regard.training.from_scratch.baseline_model import baseline_model, check_baseline
from regard.training.from_scratch.preset_model import check_model_settings, preset_config
from regard.training.head_init.initializer import (
    ProbeInitializer,
    computed_once,
    planned_contrastive,
    planned_similarity,
    progress_reporter,
    refits_head_only,
    weight_initializer,
)
from regard.training.head_init.mean_weights import MeanWeights
from regard.training.initial_model import InitialModel, check_preset, initial_model
from regard.training.job import BatchSource, TrainingJob
from regard.training.load_data import LabeledData, Where, load_data, vocabulary_texts
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.pair_order import BothOrders, OrderCheck, check_both_orders
from regard.training.pipeline import model_line, run_pipeline
from regard.training.result import TrainResult
from regard.training.resume.lock import claim, exclusive
from regard.training.resume.state import saved_settings
from regard.training.run import RunContext, TrainingInputs
from regard.training.settings import Settings, TrainSettings
from regard.training.validation import RecordValidation


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
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    skip_bad: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: OnTrainingEvent | None = None,
    distillation: Distillation | None = None,
    initial_seed: int | None = None,
    mean: MeanWeights | None = None,
    **settings: Unpack[TrainSettings],
) -> TrainResult:
    """Train a model on labeled data and write it as a folder that transformers opens too.

    data: a path or several, a folder, a glob, "-"; rows in memory, as dicts, a dict of columns, a data frame, a pyarrow
        table, a `datasets.Dataset` or `DatasetDict`; or the result of `regard.training.load_data.load_data`.
    out: the folder to write.
    start: a model folder, minilm (the default), or a hub id to fine-tune.
    preset: or the name of a network to train from scratch, or of a baseline: ngram, static or probe.
    tokenizer: its tokenizer; learned from the data if not given.
    dev: rows to score on; if not given, the folder's own validation split, or a tenth of the data.
    task: recognized from the data if not given, as are `labels` (single, class, multi, number).
    format: of the files, such as "csv"; recognized if not given.
    columns: the columns of the data by role, such as {"text": "review", "label": "stars"}.
    encoding: of the files, such as "cp1252"; recognized from their bytes if not given.
    skip_bad: a file for rows that cannot be used; without it the first such row is an error.
    resume: continue a run with the same data and settings that was stopped or killed. A run that had not begun is
        begun, and of one that has ended the result is returned.
    progress: called with a `TrainingEvent` for the start, every few steps and every score.
    distillation: a teacher, see `regard.training.engine.distillation`.
    initial_seed: seed of randomly initialized weights; that of the settings if not given.
    mean: folders whose mean weights are scored and written in place of a training.
    settings: see `regard.Settings`.

    Example: `regard.train("reviews.csv", out="runs/reviews", epochs=3)`.
    """
    user_settings = Settings.of(settings)
    check_preset(preset)
    check_model_settings(preset, user_settings.model)
    device = pick_device(user_settings.device)
    folder = claim(Path(out).expanduser(), resume=resume, overwrite=overwrite)
    reading: dict[str, Any] = {"format": format, "columns": columns, "encoding": encoding}
    reading |= {"labels": labels, "skip_bad": skip_bad}
    with preserved_random_state(device):
        context = RunContext.join(folder, device, resume=resume, progress=progress)
        records = load_data(
            data, dev=dev, task=task, dev_fraction=user_settings.dev_fraction, seed=user_settings.seed, **reading
        )
        build = partial(_training_inputs, user_settings=user_settings, start=start, preset=preset, tokenizer=tokenizer)
        first_seed = user_settings.seed if initial_seed is None else initial_seed
        build = partial(build, report=progress_reporter(context), distillation=distillation, initial_seed=first_seed)
        build = partial(build, ranks=context.world.ranks)
        inputs = _with_refit(build(records), records, build, mean, device=device, ranks=context.world.ranks)
        saved = saved_settings(user_settings, folder) if resume else {}
        return run_pipeline(context, replace(inputs, saved_settings=saved), TrainResult)


def _with_refit(
    inputs: TrainingInputs,
    records: LabeledData,
    build: Callable[[LabeledData], TrainingInputs],
    mean: MeanWeights | None,
    *,
    device: torch.device,
    ranks: int,
) -> TrainingInputs:
    """The inputs with a second training on all rows, where there is one; with mean weights, in place of training.

    Similarity, which needs no labels, is learned once for both; so are vectors by a short contrastive training.
    """
    head_only = refits_head_only(inputs, device)

    def all_rows() -> TrainingInputs:
        whole = replace(records, train=[*records.train, *records.dev], dev=[])
        second = build(whole)
        if head_only and isinstance(second.initialize, ProbeInitializer):
            second = replace(second, initialize=replace(second.initialize, trained=inputs.model.checkpoint.network))
        if second.order_check is not None and inputs.order_check is not None:
            second.order_check.scores = inputs.order_check.scores
        same = {name: getattr(inputs.settings, name) for name in MODEL_SETTINGS}
        return replace(second, recipe=inputs.recipe, settings=replace(second.settings, **same))

    if mean is not None:
        return mean.in_place_of_training(inputs, all_rows)
    if not _should_refit(inputs, records, device=device, ranks=ranks):
        return inputs
    if inputs.initialize is None or inputs.model.head_init != "similarity":
        return replace(inputs, refit=all_rows, head_only_refit=head_only)
    initialize = computed_once(inputs.initialize)
    return replace(inputs, initialize=initialize, refit=lambda: replace(all_rows(), initialize=initialize))


def explain_defaults(data: Where | LabeledData, **arguments: Unpack[DataArguments]) -> list[SettingReason]:
    """The settings that `train` would use on this data, each with its reason. Nothing is trained or written.

    The arguments are those of `train`.
    """
    user_settings, inputs, records = _untrained(data, arguments)
    refit = _should_refit(inputs, records, device=pick_device(user_settings.device), ranks=1)
    return explain_settings(user_settings, inputs, records, refit=refit)


def choose_settings(data: Where | LabeledData, **arguments: Unpack[DataArguments]) -> Settings:
    """Every setting with the value that `train` would use on this data. Nothing is trained or written.

    The arguments are those of `train`.
    """
    return _resolved(_untrained(data, arguments)[1])


def settings_to_repeat(data: Where | LabeledData, **arguments: Unpack[DataArguments]) -> Settings:
    """The settings with which `train` does on this data what it would do by default; see `choose_settings`.

    A network that is ready before the first step has no values for its steps: with them, it would be trained further.
    """
    _, inputs, _ = _untrained(data, arguments)
    return without_steps(_resolved(inputs), inputs.settings) if inputs.fitted else _resolved(inputs)


def _resolved(inputs: TrainingInputs) -> Settings:
    model = inputs.model
    return resolve_settings(
        inputs.settings, inputs.size, model.checkpoint.config, pretrained=model.pretrained, recipe=inputs.recipe
    )


class DataArguments(TrainSettings, total=False):
    """The arguments of `train` that say what is trained on which data."""

    start: str | Path | None
    preset: str | None
    tokenizer: str | Path | None
    dev: Where | None
    task: str | None
    format: str | None
    columns: Columns | None
    encoding: str | None
    labels: str | None


def _untrained(data: Where | LabeledData, arguments: Mapping[str, Any]) -> tuple[Settings, TrainingInputs, LabeledData]:
    """The settings as they were given, the initial model with the data, and the data."""
    names = ("dev", "task", "format", "columns", "encoding", "labels")
    reading = {name: arguments.get(name) for name in names}
    beginning: dict[str, Any] = {name: arguments.get(name) for name in ("start", "preset", "tokenizer")}
    rest = {name: value for name, value in arguments.items() if name not in (*reading, *beginning)}
    user_settings = Settings.of(rest)
    with preserved_random_state(pick_device(user_settings.device)):
        records = load_data(data, dev_fraction=user_settings.dev_fraction, seed=user_settings.seed, **reading)
        beginning |= {"user_settings": user_settings, "initial_seed": user_settings.seed}
        inputs = _training_inputs(records, **beginning)
        frozen_parameters(inputs.model.checkpoint.network, user_settings.freeze or ())  # names of parts are checked
        return user_settings, inputs, records


def _training_inputs(
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
    baseline, recipe = _baseline_and_recipe(data, preset, user_settings, distillation, start=start, tokenizer=tokenizer)
    settings = fill_from_recipe(user_settings, recipe, model_known=False)
    task = _task(data, settings, baseline)
    model, settings = _model_and_settings(
        task, data, settings, baseline, initial_seed, start=start, preset=preset, tokenizer=tokenizer, report=report
    )
    preprocessing = _preprocessing(model, settings)
    joined = _joins_records(task, model, settings, distillation)
    source, examples = _source(task, data, preprocessing, settings, distillation, joined=joined)
    rows, distilled = len(data.train), distillation is not None
    size = DataSize.of(examples.lengths, rows=rows if joined else None)
    training = NewTraining(task, model, baseline, size, rows, joined=joined, distilled=distilled, ranks=ranks)
    settings, recipe = with_recipe(settings, recipe, training)
    name = str(preset or start or "minilm") if baseline is None else baseline.from_model(start)
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
        describe=lambda job: start_lines(data, user_settings, job, name, model),
        initialize=weight_initializer(task, data.train, examples, preprocessing, model, baseline, initial_seed),
        fitted=_is_fitted(model, baseline, user_settings),
        details=lambda _: _details(data, settings, model, baseline),
        validation=RecordValidation(data.dev, preprocessing) if data.dev else None,
        max_tokens=source.max_tokens if isinstance(source, BpeDropoutSource | JoinedSentences | BothOrders) else None,
        order_check=_order_check(task, data, source, preprocessing, settings, distillation),
        distillation=distillation,
    )


def _preprocessing(model: InitialModel, settings: Settings) -> Preprocessing:
    return preprocessing_of(model.checkpoint, model.tokenizer, window=settings.window, overlap=settings.overlap)


def _baseline_and_recipe(
    data: LabeledData,
    preset: str | None,
    settings: Settings,
    distillation: Distillation | None,
    *,
    start: str | Path | None,
    tokenizer: str | Path | None,
) -> tuple[Baseline | None, Recipe]:
    """The baseline that the preset names, if any, and the defaults of the task: from scratch, or for fine-tuning."""
    baseline = BASELINES.get(preset or "")
    if baseline is not None:
        check_baseline(baseline, data.task, settings, start=start, tokenizer=tokenizer)
    config = preset_config(None if baseline else preset, settings.model)
    gpu = pick_device(settings.device).type == "cuda"
    recipe = task_class(data.task).recipe(config, len(data.train), gpu=gpu)
    if distillation is not None:
        recipe = replace(recipe, rdrop=0.0)  # the teacher's probabilities are the second target
    return baseline, recipe


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


def _is_fitted(model: InitialModel, baseline: Baseline | None, user_settings: Settings) -> bool:
    """Whether the network is ready before the first training step.

    After contrastive training, more training makes it worse (benchmarks/defaults.md): there is none unless asked for.
    """
    if baseline is not None:
        return baseline.fitted
    return model.head_init == "contrastive" and user_settings.epochs is None and user_settings.steps is None


def _should_refit(inputs: TrainingInputs, data: LabeledData, *, device: torch.device, ranks: int) -> bool:
    """Whether a second network is trained on all rows: on request, or by default where this takes little time."""
    refit, model = inputs.settings.refit, inputs.model
    if refit == "auto":
        rows, gpu = len(data.train) + len(data.dev), device.type == "cuda"
        single_texts = model.pretrained and inputs.task.probe == "default" and inputs.distillation is None
        short = default_refit(model.checkpoint.config, rows, probe=model.probe, gpu=gpu)
        return (model.probe or single_texts) and short and data.split_off and bool(data.dev) and ranks == 1
    if refit == "yes" and not data.dev:
        raise InputError(
            f"{setting('refit', 'yes')} was given, but there are no validation rows: all rows are trained on already. "
            "Leave it out."
        )
    if refit == "yes" and ranks > 1:
        raise InputError(f"{setting('refit', 'yes')} is not possible on {ranks} GPUs. Train on one, or leave it out.")
    return refit == "yes"


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
        bpe=settings.bpe_dropout > 0,
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


def _joins_records(task: Task, model: InitialModel, settings: Settings, distillation: Distillation | None) -> bool:
    """Whether sentences of a document share sequences: not where a setting or a teacher counts sentences one by one."""
    one_by_one = settings.batch_size or settings.explainable or settings.bpe_dropout or distillation is not None
    return task.joins_records and model.pretrained and not one_by_one and settings.class_balance != "sampling"


def _source(
    task: Task,
    data: LabeledData,
    preprocessing: Preprocessing,
    settings: Settings,
    distillation: Distillation | None = None,
    *,
    joined: bool = False,
) -> tuple[BatchSource, Examples]:
    """The sequences of each epoch, and those that their lengths are planned with. joined: of several records each."""
    check_both_orders(task, settings, distilled=distillation is not None)
    if joined:
        sentences = task.joined_source(data.train, preprocessing, seed=settings.seed)
        return sentences, sentences.epoch(0)
    if distillation is not None:
        taught = distillation.soft_targets(task, task.examples(data.train, preprocessing, labeled=True), data.train)
        return taught, taught
    if settings.bpe_dropout:
        marking = replace(preprocessing, tokenizer=MarkingTokenizer.of(preprocessing.tokenizer))
        marked = task.examples(data.train, marking, labeled=True)
        resampled = BpeDropoutSource(marked, preprocessing.tokenizer, dropout=settings.bpe_dropout, seed=settings.seed)
        return resampled, resampled.examples
    examples = task.examples(data.train, preprocessing, labeled=True)
    if settings.explainable:
        return MaskedWordsSource.of(examples, preprocessing.tokenizer, seed=settings.seed), examples
    if settings.both_orders == "yes":
        return BothOrders.of(examples, task, data.train, preprocessing, seed=settings.seed), examples
    if settings.class_balance == "sampling":
        return balanced_source(examples, settings.seed), examples
    return examples, examples


def _order_check(
    task: Task,
    data: LabeledData,
    source: BatchSource,
    preprocessing: Preprocessing,
    settings: Settings,
    distillation: Distillation | None,
) -> OrderCheck | None:
    """For text pairs, unless the user, a teacher or another setting decides what an epoch reads."""
    if task.name != "pair" or settings.both_orders != "auto" or distillation is not None:
        return None
    return OrderCheck(source, data.train, data.dev, preprocessing) if isinstance(source, Examples) else None


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
    """Raise InputError where masked words and the task or another setting do not go together."""
    if not settings.explainable:
        return
    if not task.masks_words:
        raise InputError(
            f"{setting('explainable')} was given, but the task is {task.name}; it is for classify, pair, tag and "
            "answer. Leave it out."
        )
    if settings.class_balance == "sampling":
        both = f"{setting('explainable')} and {setting('class_balance', 'sampling')}"
        raise InputError(f"{both} were both given; use {setting('class_balance', 'weights')} with the first.")


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
        "contrastive": planned_contrastive(model, len(data.train), settings.freeze, device),
        "similarity": planned_similarity(model, len(data.train), device),
    }
    return {name: asdict(plan) for name, plan in plans.items() if plan is not None}


def start_lines(
    data: LabeledData, user_settings: Settings, job: TrainingJob, start: str, model: InitialModel
) -> list[str]:
    """What the data was recognized as, and which settings were chosen, in words."""
    lines = [f"data: {data.reason}", f"rows: {_rows_line(data)}"]
    lines += [f"hint: {hint}" for hint in data.hints]
    lines += job.task.notes
    lines.append(model_line(job, start, pretrained=model.pretrained))
    device = next(job.network.parameters()).device
    similarity = planned_similarity(model, len(data.train), device)
    if similarity is not None and job.steps:
        first = f"first, the network learns how similar {similarity.pairs:,} pairs of these texts are"
        lines.append(f"similarity: {first}; --head-init random leaves this out")
    contrastive = planned_contrastive(model, len(data.train), user_settings.freeze, device)
    if contrastive is not None:
        first = f"{contrastive.repeats * contrastive.steps} steps make the vectors of texts with the same label similar"
        lines.append(f"contrastive: {first}, then the head is fitted; --head-init probe leaves the steps out")
    chosen = chosen_settings(user_settings, job.settings)
    if chosen and job.steps:
        often = f"{job.repeats} × " if job.repeats > 1 else ""
        lines.append(f"chosen: {', '.join(chosen)}: {often}{pluralize(job.steps, 'step')}")
    return lines


def _rows_line(data: LabeledData) -> str:
    """Such as "342 training rows, 38 validation rows (10 % split)"."""
    rows = pluralize(len(data.train), "training row")
    if data.bad_rows:
        rows = f"{pluralize(data.bad_rows, 'unusable row')} skipped, {rows}"
    if not data.dev:
        return f"{rows}, no validation rows"
    validation = pluralize(len(data.dev), "validation row")
    if not data.split_off:
        return f"{rows}, {validation}"
    percent = 100 * len(data.dev) / (len(data.train) + len(data.dev))
    return f"{rows}, {validation} ({percent:.0f} % split)"
