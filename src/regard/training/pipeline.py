"""The steps that every training goes through, whatever it is trained on.

    load data → choose settings → initial model → plan → fit → score → write

`regard.train` and `regard.pretrain` load their data and build the initial model (`TrainingInputs`); `run_pipeline` does
the rest, the same for both.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from regard.errors import InputError, setting
from regard.tasks.classify import Classify
from regard.tasks.inference import ScoreResult, score_outputs
from regard.tasks.task import Answer, Task
from regard.training.decoding import with_beams
from regard.training.defaults.recipes import resolve_settings, without_steps
from regard.training.engine.distributed.fsdp import unshard
from regard.training.engine.distributed.world import leave_process_group
from regard.training.engine.loop import Stopped, fit
from regard.training.engine.lora import merge_lora
from regard.training.engine.schedule import DECAYING
from regard.training.from_scratch.model_settings import ModelSettings
from regard.training.head_init.new_head import new_heads
from regard.training.head_init.similarity import LEARNING
from regard.training.job import FitResult, TrainingJob
from regard.training.output.curves import import_in_background
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.output.score_note import score_note
from regard.training.output.trackers import with_trackers
from regard.training.output.write_run import write_run
from regard.training.plan import plan_job, prepare_network
from regard.training.result import TrainResult
from regard.training.resume.state import (
    check_saved_identity,
    has_initial_weights,
    has_state,
    remove_partial_state,
    saved_step,
)
from regard.training.run import RunContext, TrainedRun, TrainingInputs, Validation
from regard.training.settings import Settings
from regard.training.validation import ValidationRows

# Settings that may differ between a run and its resumption.
FREE_SETTINGS = ("log_every", "save_every", "device", "micro_batch_tokens", "patience", "tensorboard", "log_to")
REPEATS_LINE = "repeats: {} such trainings with other seeds, whose weights are averaged; --repeats 1 trains once"
REFIT_LINE = "refit: then another network is trained on all rows, validation rows too; --refit no leaves this out"
HEAD_LINE = "refit: then the head is fitted again on all rows, validation rows too; --refit no leaves this out"
Result = TypeVar("Result", bound=TrainResult)


def run_pipeline(context: RunContext, inputs: TrainingInputs, result: type[Result]) -> Result:
    """Plan, fit, score and write. A resumed run that had ended gives its result again."""
    job = plan_training(context, inputs)
    finished = result.of_finished(context.folder, job.identity) if context.resume else None
    if finished is None:
        if inputs.validation is not None:
            inputs.validation.check(job)
        resumed = context.resume and has_state(context.folder)
        if resumed:
            check_saved_identity(context.folder, job.identity)
        if job.repeats > 1:  # every training begins from the initial weights
            resumed = resumed and has_initial_weights(context.folder)
        _report_begin(context, inputs, job, resumed=resumed)
        before: dict[str, Any] = {}
        if context.world.is_main_process and not context.resume:
            remove_partial_state(context.folder, state=True)  # of a run that is overwritten
        if inputs.initialize is not None and not resumed:
            before = {"initialization": {"seconds": _initialize(context, inputs.initialize, job)}}
        try:
            run = fit_and_score(context, inputs, job)
        except Stopped:  # all ranks stop at the same step
            leave_process_group(context.world)
            raise
        run = replace(run, details={**run.details, **before})
        if inputs.refit is not None and should_train_again(run):
            run = train_again(run, inputs.refit())
        if context.world.is_main_process:
            write_run(run)
        finished = result.of(run)
    leave_process_group(context.world)
    return finished


def _initialize(context: RunContext, initialize: Callable[[TrainingJob], None], job: TrainingJob) -> float:
    """Set initial weights that depend on the data; returns the seconds that this took."""
    began = time.monotonic()
    try:
        initialize(job)
    except KeyboardInterrupt:
        saved = "the saved state is as it was" if has_state(context.folder) else "nothing is saved yet"
        words = f"stopped before the first training step; {saved}."
        raise Stopped(words, signal=signal.SIGINT, advice="Start it again.") from None
    context.world.broadcast_weights(job.network)
    return round(time.monotonic() - began, 3)


def _report_begin(context: RunContext, inputs: TrainingInputs, job: TrainingJob, *, resumed: bool) -> None:
    """Report what is trained, and how. resumed: the initial weights are not computed again."""
    refit = inputs.refit is not None
    lines = [line for line in inputs.describe(job) if not (resumed and line.startswith("similarity:"))]
    lines += [_resume_line(job)] if context.resume else []
    lines += [REPEATS_LINE.format(job.repeats)] if job.repeats > 1 else []
    if refit:
        lines.append(HEAD_LINE if inputs.head_only_refit else REFIT_LINE)
    values = {"lines": lines, "new_heads": new_heads(inputs.model.checkpoint), "repeats": job.repeats}
    values |= {"trainings": 2 * job.repeats if refit else job.repeats}
    context.report(TrainingEvent("begin", 0, job.steps, values))


def _resume_line(job: TrainingJob) -> str:
    """Where a resumed training goes on."""
    step = saved_step(job.folder)
    if step is None:
        return "resume: no state was saved, so the training starts from the beginning"
    if step >= job.steps and job.repeats > 1:
        return f"resume: the first of {job.repeats} trainings is done; it goes on with the second"
    return f"resume: goes on after step {step:,} of {job.steps:,}"


def plan_training(context: RunContext, inputs: TrainingInputs) -> TrainingJob:
    """Choose the settings that were not given, prepare the network and plan the steps."""
    checkpoint = inputs.model.checkpoint
    network = checkpoint.network.to(context.device)
    pretrained, recipe = inputs.model.pretrained, inputs.recipe
    settings = resolve_settings(inputs.settings, inputs.size, checkpoint.config, pretrained=pretrained, recipe=recipe)
    settings = replace(settings, **inputs.saved_settings)
    check_unused(inputs)
    check_repeats(inputs, context.world.ranks)
    prepare_network(network, settings)
    progress = context.progress
    if context.world.is_main_process:
        trackers = set(settings.log_to) | ({"tensorboard"} if settings.tensorboard else set())
        progress = with_trackers(sorted(trackers), context.folder, asdict(settings), progress)
        if context.device.type == "cuda":
            progress = with_background_import(progress)
    job = plan_job(
        network,
        inputs.task,
        inputs.source,
        settings,
        context.folder,
        max_tokens=inputs.max_tokens,
        average=inputs.average,
        world=context.world,
        resume=context.resume,
        progress=progress,
    )
    settings_used = without_steps(settings, inputs.settings) if inputs.fitted else settings
    job = replace(
        job,
        identity={**inputs.identity, **resume_settings(settings_used)},
        score_initial=inputs.initialize is not None and inputs.model.head_init != "similarity",
        prefer_last=pretrained and settings.schedule in DECAYING,
        saves_initial=inputs.initialize is not None and context.device.type == "cpu",  # a GPU computes them in seconds
    )
    if inputs.distillation is not None:
        job = replace(job, distillation=inputs.distillation)
        if not (inputs.distillation.fits_recorded_steps and inputs.task.predicts_classes):
            job = replace(job, record=False, compile="no")
    if inputs.fitted:
        job = replace(job, steps=0)
    return with_validation(job, inputs)


def with_background_import(progress: OnTrainingEvent | None) -> OnTrainingEvent:
    """The same callback, which also imports matplotlib in a thread, once, when the first steps are logged.

    Until then the main thread is busy with recording the steps, and would wait for this one; later it waits for a GPU.
    """
    started = False

    def forward(event: TrainingEvent) -> None:
        nonlocal started
        if not started and (event.kind == "log" or event.values.get("what") == LEARNING):
            started = True
            import_in_background()
        if progress is not None:
            progress(event)

    return forward


class LatestScore:
    """Scores the network of a job during training, and keeps the latest scores of all rows.

    The weights that are scored last are mostly those that a training ends with: they are not scored again then.
    """

    def __init__(self, job: TrainingJob, validation: Validation, rows: int) -> None:
        self.job, self.validation, self.count = job, validation, rows
        self.rows: ValidationRows | None = None
        self.result: ScoreResult | None = None

    def __call__(self) -> ScoreResult:
        self.rows = ValidationRows(self.count) if self.validation.samples_all(self.job.task) else None
        self.result = self.validation.score(self.job, sampled=True, rows=self.rows)
        return self.result


def check_unused(inputs: TrainingInputs) -> None:
    """Raise InputError if a setting was given that would change nothing."""
    settings = inputs.settings
    if settings.rdrop_start and not settings.rdrop:
        words = f"{setting('rdrop_start', settings.rdrop_start)} was given, but this training does not use R-Drop"
        raise InputError(f"{words}. Give {setting('rdrop', 1)} too, or leave it out.")
    if (settings.repeats or 1) > 1 and inputs.fitted:
        words = f"{setting('repeats', settings.repeats)} was given, but the weights are set without training steps"
        raise InputError(f"{words}, so there is nothing to repeat. Give {setting('epochs')}, or leave it out.")


def check_repeats(inputs: TrainingInputs, ranks: int) -> None:
    """Raise InputError if weights are to be averaged that have no useful mean."""
    settings = inputs.settings
    if (settings.repeats or 1) == 1:
        return
    words = f"{setting('repeats', settings.repeats)} was given, but"
    if not inputs.model.pretrained:
        raise InputError(f"{words} networks from scratch end too far from each other for a mean. Leave it out.")
    if settings.lora.rank:
        raise InputError(f"{words} weights of LoRA are not averaged. Leave one of them out.")
    if ranks > 1:
        raise InputError(f"{words} trainings are not repeated on {ranks} GPUs. Train on one, or leave it out.")


def with_validation(job: TrainingJob, inputs: TrainingInputs) -> TrainingJob:
    """The job with its score during training, where there are validation rows."""
    if inputs.validation is None:
        return job
    return replace(job, score=LatestScore(job, inputs.validation, len(inputs.data.dev)))


def final_scores(job: TrainingJob, fitted: FitResult, inputs: TrainingInputs) -> tuple[ScoreResult, ValidationRows]:
    """The scores of all validation rows, and these rows; computed, unless these weights were the last to be scored."""
    assert inputs.validation is not None
    latest = job.score
    same_weights = fitted.best_step == fitted.steps and not job.settings.lora.rank and job.world.ranks == 1
    same_weights = same_weights and fitted.repeats == 1
    if same_weights and isinstance(latest, LatestScore) and latest.rows is not None and latest.result is not None:
        return latest.result, latest.rows
    rows = ValidationRows(len(inputs.data.dev))
    return inputs.validation.score(job, rows=rows), rows


def fit_and_score(context: RunContext, inputs: TrainingInputs, job: TrainingJob) -> TrainedRun:
    """Train to the end, then score the best weights on all validation rows."""
    fitted = fit(job)
    if job.settings.lora.rank:
        merge_lora(job.network)
    rows = ValidationRows(len(inputs.data.dev))
    task, first_scores, scores, answers = job.task, None, None, None
    if inputs.validation is not None:
        first_scores, rows = final_scores(job, fitted, inputs)
        task, scores, answers = tune_task(job, inputs.validation, first_scores, rows)
    details = {
        "pretrained": inputs.model.pretrained,
        "new_heads": new_heads(inputs.model.checkpoint),
        **inputs.details(scores),
    }
    labels = job.task.names if isinstance(job.task, Classify) and job.task.kind == "single" else ()
    note = score_note(rows.rows, scores, split_off=inputs.data.split_off, labels=labels)
    if note is not None:
        context.report(TrainingEvent("note", fitted.steps, job.steps, {"text": note}))
    uncalibrated = None if first_scores is None else first_scores.calibration
    if job.settings.beams > 1:
        checkpoint = with_beams(inputs.model.checkpoint, job.settings.beams)
        inputs = replace(inputs, model=inputs.model._replace(checkpoint=checkpoint))
    unshard(job.network)
    return TrainedRun(context, inputs, job, fitted, task, scores, details, rows.rows, answers, uncalibrated)


def tune_task(
    job: TrainingJob, validation: Validation, scores: ScoreResult, rows: ValidationRows
) -> tuple[Task, ScoreResult, list[Answer] | None]:
    """The task with what is tuned on the validation rows, its scores, and its answers where these were computed here.

    The network does not run again for them, unless `rows` are only a part of the rows.
    """
    task = job.task.tuned(scores.meter, rows.rows)
    if task == job.task:
        return task, scores, None
    if rows.is_complete and rows.rows:
        return task, *score_outputs(task, rows.rows, loss=scores.loss)
    return task, validation.score(replace(job, task=task)), None


def should_train_again(run: TrainedRun) -> bool:
    """Whether a second network is trained on all rows: not by default if an earlier step than the last was the best.

    The second network is trained to the last step, without validation rows that would show when it gets worse.
    """
    if run.inputs.settings.refit == "yes" or not 0 < run.fitted.best_step < run.fitted.steps:
        return True
    text = f"the weights of step {run.fitted.best_step:,} are better than the last: not trained again on all rows"
    run.context.report(TrainingEvent("note", run.fitted.steps, run.job.steps, {"text": text}))
    return False


def train_again(run: TrainedRun, inputs: TrainingInputs) -> TrainedRun:
    """Train another network on all rows, for as many epochs; the scores are those of the first one.

    If the initial weights of the first one were its best, they are not trained here either. The state is not saved
    meanwhile: a run that is stopped here goes on from the end of the first training.
    """
    context = run.context
    head_only = run.inputs.head_only_refit
    text = f"{'fitting the head' if head_only else 'training'} again on all {inputs.rows:,} rows"
    context.report(TrainingEvent("note", 0, run.job.steps, {"text": text, "refit": True}))
    inputs = replace(inputs, settings=replace(inputs.settings, tensorboard=False, log_to=()))
    job = replace(plan_training(replace(context, resume=False), inputs), writes_files=False, score=None)
    began = time.monotonic()
    try:
        if inputs.initialize is not None:
            inputs.initialize(job)
        if run.job.score is None or run.fitted.best_step > 0:
            fit(job)
    except (Stopped, KeyboardInterrupt) as stop:
        saved = f"the state of the first training is saved in {context.folder}"
        words = f"stopped while training again on all rows; {saved}."
        raise Stopped(words, signal=getattr(stop, "signal", signal.SIGINT)) from None
    if job.settings.lora.rank:
        merge_lora(job.network)
    job.network.eval()
    seconds = round(time.monotonic() - began, 3)
    refit = {"rows": inputs.rows, "steps": job.steps, "seconds": seconds, "head_only": head_only}
    checkpoint = replace(run.inputs.model.checkpoint, network=job.network, config=job.network.config)
    model = run.inputs.model._replace(checkpoint=checkpoint, tokenizer=inputs.model.tokenizer)
    written = replace(run.inputs, model=model, rows=inputs.rows)
    details = {**run.details, "refit": refit}
    return replace(run, inputs=written, job=replace(run.job, network=job.network), details=details)


def resume_settings(settings: Settings) -> dict[str, Any]:
    """The settings that a resumption must share, as JSON has them."""
    values = {name: value for name, value in asdict(settings).items() if name not in FREE_SETTINGS}
    if settings.model == ModelSettings():
        del values["model"]  # so that runs of versions without these settings resume
    readable: dict[str, Any] = json.loads(json.dumps(values))
    return readable


def model_line(job: TrainingJob, start: str, *, pretrained: bool) -> str:
    """The model a training starts from, in words."""
    weights = sum(parameter.numel() for parameter in job.network.parameters())
    untrained = "" if pretrained or not job.steps else ", untrained (randomly initialized)"
    return f"model: {start}, {weights:,} parameters, on {next(job.network.parameters()).device}{untrained}"
