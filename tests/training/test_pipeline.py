"""The steps of every training: settings, plan, fit, score and write."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.inputs import run_context, training_inputs

from regard.tasks.inference import ScoreResult
from regard.training import validation
from regard.training.engine.distributed.world import World
from regard.training.engine.loop import fit
from regard.training.output.metrics_log import TrainingEvent
from regard.training.pipeline import (
    FREE_SETTINGS,
    final_scores,
    fit_and_score,
    model_line,
    plan_training,
    resume_settings,
    run_pipeline,
    with_background_import,
    with_validation,
)
from regard.training.result import TrainResult
from regard.training.run import RunContext
from regard.training.settings import Lora, Settings
from regard.training.validation import ValidationRows


def test_a_run_reports_writes_and_returns_its_result(tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    context = run_context(tmp_path / "run", progress=events.append)
    result = run_pipeline(context, training_inputs(), TrainResult)
    assert (result.task, result.rows, result.steps, result.folder) == ("classify", 12, 2, str(tmp_path / "run"))
    assert 0 <= result.scores["accuracy"].value <= 1
    assert events[0].kind == "begin"
    assert events[0].values["lines"] == ["2 steps"]
    assert (tmp_path / "run/model.safetensors").is_file()
    again = run_pipeline(run_context(tmp_path / "run", resume=True), training_inputs(), TrainResult)
    assert replace(again, seconds=result.seconds) == result  # it had ended, so nothing is trained
    assert len([event for event in events if event.kind == "begin"]) == 1


def test_matplotlib_is_imported_once_after_the_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    imports: list[str] = []
    monkeypatch.setattr("regard.training.pipeline.import_in_background", lambda: imports.append("matplotlib"))
    vectors, similarity = (TrainingEvent("fit", 1, 5, {"what": what}) for what in ("vectors", "learning similarity"))
    begin, log = TrainingEvent("begin", 0, 2, {"lines": []}), TrainingEvent("log", 1, 2, {})
    for event in (similarity, log):
        received: list[TrainingEvent] = []
        forward = with_background_import(received.append)
        forward(begin)
        forward(vectors)
        assert not imports
        forward(event)
        forward(log)
        assert imports == ["matplotlib"]
        assert received == [begin, vectors, event, log]
        imports.clear()
    with_background_import(None)(log)
    assert imports == ["matplotlib"]


@pytest.mark.parametrize("limit", [validation.MAX_ROWS, 2])
def test_the_final_score_is_of_all_rows_with_the_tuned_task(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network runs again for it only if there are more rows than are kept."""
    monkeypatch.setattr(ValidationRows.__init__, "__kwdefaults__", {"limit": limit})
    inputs = training_inputs(eval_every=10**6)
    calls: list[tuple[Any, bool]] = []
    assert inputs.validation is not None
    score = type(inputs.validation).score

    def scored(self: Any, job: Any, *, sampled: bool = False, rows: ValidationRows | None = None) -> ScoreResult:
        calls.append((job.task, sampled))
        return score(self, job, sampled=sampled, rows=rows)

    tuned = replace(inputs.task, label_smoothing=0.5)  # type: ignore[type-var]  # any task that is not equal
    monkeypatch.setattr(type(inputs.validation), "score", scored)
    monkeypatch.setattr(type(inputs.task), "tuned", lambda self, meter, rows: tuned)
    context = run_context(tmp_path / "run")
    run = fit_and_score(context, inputs, plan_training(context, inputs))
    again = [] if limit > 2 else [(tuned, False)]
    assert calls == [(inputs.task, True), *again]  # the last weights were scored, and not again
    assert run.task == tuned
    assert run.scores is not None
    assert run.scores.rows == len(inputs.data.dev)
    assert run.details == {"pretrained": False, "new_heads": []}


@pytest.mark.parametrize(
    ("best_step", "lora", "samples_all", "computed"),
    [(2, 0, True, 0), (1, 0, True, 1), (2, 2, True, 1), (2, 0, False, 1)],
)
def test_weights_that_were_scored_last_are_not_scored_again(
    best_step: int, lora: int, samples_all: bool, computed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = training_inputs(eval_every=1, lora=Lora(rank=lora))
    assert inputs.validation is not None
    monkeypatch.setattr(type(inputs.validation), "samples_all", lambda self, task: samples_all)
    job = plan_training(run_context(tmp_path / "run"), inputs)
    fitted = fit(job)
    whole: list[ScoreResult] = []
    score = inputs.validation.score
    monkeypatch.setattr(
        type(inputs.validation), "score", lambda self, job, **options: whole.append(score(job, **options)) or whole[-1]
    )
    result, rows = final_scores(job, replace(fitted, best_step=best_step), inputs)
    assert len(whole) == computed
    assert len(rows.rows) == result.rows == len(inputs.data.dev)
    assert result.scores == score(job).scores


def test_lora_is_merged_into_the_weights(tmp_path: Path) -> None:
    inputs = training_inputs(lora=Lora(rank=2))
    names = set(inputs.model.checkpoint.network.state_dict())
    context = run_context(tmp_path / "run")
    job = plan_training(context, inputs)
    assert set(job.network.state_dict()) != names
    assert set(fit_and_score(context, inputs, job).job.network.state_dict()) == names


def test_open_settings_are_chosen_and_the_identity_has_them(tmp_path: Path) -> None:
    inputs = training_inputs(lr=None, batch_tokens=None)
    job = plan_training(run_context(tmp_path / "run"), inputs)
    assert job.settings.lr is not None
    assert job.settings.batch_tokens is not None
    assert job.identity["lr"] == job.settings.lr
    assert {name: job.identity[name] for name in inputs.identity} == dict(inputs.identity)


def test_a_job_without_validation_rows_has_no_score(tmp_path: Path) -> None:
    inputs = replace(training_inputs(), validation=None)
    context = run_context(tmp_path / "run")
    job = plan_training(context, inputs)
    assert job.score is None
    assert with_validation(job, training_inputs()).score is not None
    assert fit_and_score(context, inputs, job).scores is None


def test_settings_that_a_resumption_must_share() -> None:
    shared = resume_settings(Settings(freeze=("encoder",), lora=Lora(rank=4), log_every=7))
    assert not set(FREE_SETTINGS) & set(shared)
    assert shared["freeze"] == ["encoder"]  # as JSON has it
    assert shared["lora"] == {"rank": 4, "alpha": 16.0, "dropout": 0.0}
    assert json.loads(json.dumps(shared)) == shared
    assert shared == resume_settings(Settings(freeze=("encoder",), lora=Lora(rank=4), log_every=9, patience=3))
    assert shared != resume_settings(Settings(freeze=("encoder",), lora=Lora(rank=4), seed=1))


def test_the_model_in_words(tmp_path: Path) -> None:
    job = plan_training(run_context(tmp_path / "run"), training_inputs())
    job = replace(job, network=torch.nn.Linear(999, 2))  # type: ignore[arg-type]  # 2,000 weights
    assert model_line(job, "mine", pretrained=True) == "model: mine, 2,000 parameters, on cpu"
    assert model_line(job, "mine", pretrained=False).endswith("on cpu, untrained (randomly initialized)")


CPU = torch.device("cpu")


def test_one_process_is_the_main_process(tmp_path: Path) -> None:
    context = RunContext.join(tmp_path, CPU, resume=True)
    assert (context.folder, context.device, context.resume) == (tmp_path, CPU, True)
    assert context.world == World(0, 1)


@pytest.mark.parametrize(("rank", "events"), [(0, 1), (1, 0)])
def test_only_the_main_process_reports(tmp_path: Path, rank: int, events: int) -> None:
    reported: list[TrainingEvent] = []
    RunContext(tmp_path, CPU, World(rank, 2), progress=reported.append).report(TrainingEvent("log", 1, 2))
    assert reported == [TrainingEvent("log", 1, 2)] * events
