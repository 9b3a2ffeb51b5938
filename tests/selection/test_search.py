"""A search: the defaults first, trials within the time, and a score on rows that chose nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.comparison.trainings import time_budget
from regard.comparison.trainings.time_budget import BudgetGuard, OverBudget
from regard.errors import InputError, MissingExtra
from regard.selection import search
from regard.selection.run_notes import add_to_run, final_begun, mark_final
from regard.selection.search import search_settings, search_space
from regard.selection.trials import Trial, best_trial, nothing_searched
from regard.training.output.metrics_log import TrainingEvent
from regard.training.settings import Settings
from regard.training.train import train

pytest.importorskip("optuna")
Rows = list[dict[str, Any]]
FAST: dict[str, Any] = {"preset": "tiny-bert", "device": "cpu", "epochs": 1}


def test_the_space_is_around_the_defaults() -> None:
    space = search_space(Settings(lr=3e-4, epochs=4), {}, rows=1_000)
    assert space["lr"] == pytest.approx((1e-4, 9e-4))
    assert space["epochs"] == [2, 4, 6, 8, 12]
    assert list(space["batch_size"]) == [8, 16, 32, 64]
    assert search_space(Settings(lr=3e-4, epochs=4), {}, rows=40)["batch_size"] == [8]


def test_what_is_given_is_not_searched() -> None:
    assert search_space(Settings(lr=3e-4, epochs=4), {"lr": 3e-4, "epochs": 4}, rows=99).keys() == {
        "batch_size",
        "dropout",
    }
    everything = {"lr": 1, "epochs": 1, "batch_size": 1, "dropout": 0}
    with pytest.raises(InputError, match="Leave some of them out"):
        search_space(Settings(lr=3e-4, epochs=4), everything, rows=99)


def test_a_search_ends_with_a_model_and_a_score_on_other_rows(rows: Rows, tmp_path: Path) -> None:
    messages: list[str] = []
    result = search_settings(
        rows,
        time="10m",
        trials=3,
        out=tmp_path / "run",
        progress=lambda event: messages.append(event.values["message"]),
        **FAST,
    )
    assert [trial.number for trial in result.trials] == [0, 1, 2]
    assert result.trials[0].settings == {}
    assert result.trials[1].settings.keys() == {"lr", "batch_size", "dropout"}
    assert (result.test_rows, result.rows) == (12, 48)
    assert result.scores.keys() >= {"accuracy"}
    assert messages[0] == "trial 1"
    assert "best accuracy" in messages[2]
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["search"]["settings"] == result.settings
    assert run["data"]["train_rows"] == 48
    for name, value in result.settings.items():
        assert run["settings"][name] == pytest.approx(value)
    assert not (tmp_path / "run.search").exists()
    assert regard.load(tmp_path / "run").predict(["the film was superb"])
    assert json.loads(json.dumps(result.json()))["trials"][0]["number"] == 0
    assert "trials" in result._repr_html_()
    assert result.notes == ()
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Search for settings" in page
    assert "12 test rows that no trial of the search has seen" in page
    assert f"{result.scores['accuracy'].value:.4f}" in page
    assert "nothing was searched" not in page.lower()


def test_the_time_ends_a_search_after_its_first_trial(rows: Rows, tmp_path: Path) -> None:
    result = search_settings(rows, time=0.01, out=tmp_path / "run", **FAST)
    assert len(result.trials) == 1
    (note,) = result.notes
    assert note.startswith("nothing was searched: the time was enough for one trial only, with the default settings")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["search"]["notes"] == [note]
    assert f"N{note[1:]}." in (tmp_path / "run" / "report.html").read_text()
    assert "nothing was searched" in result._repr_html_()


def test_trainings_that_take_too_long_have_fewer_steps(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first trial and the final training too: the time is for all of them."""
    limits: list[float] = []

    class Slow(BudgetGuard):
        def __call__(self, event: TrainingEvent) -> None:
            if event.kind == "log":
                limits.append(self.seconds)
                raise OverBudget(2 if len(limits) == 1 else 3, 400, 9.0)

    monkeypatch.setattr(time_budget, "LEAST", 1)
    monkeypatch.setattr(search, "BudgetGuard", Slow)
    result = search_settings(rows, time=60, trials=1, out=tmp_path / "run", log_every=1, **FAST)
    assert limits[0] == pytest.approx(60 / 2.3, abs=3)
    assert limits[1] < 60
    assert result.trials[0].settings == {"steps": 2}
    assert (result.trials[0].full_seconds or 0) > 2  # 400 steps in the time of 2
    assert "one trial was asked for" in result.notes[0]
    assert result.settings == {"steps": 3}
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (run["settings"]["steps"], run["settings"]["epochs"]) == (3, None)


def test_a_stopped_search_keeps_its_trials(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def stops(*args: Any, **options: Any) -> Any:
        calls.append(options)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(*args, **options)

    monkeypatch.setattr("regard.selection.search.train", stops)
    with pytest.raises(KeyboardInterrupt):
        search_settings(rows, time="10m", trials=3, out=tmp_path / "run", **FAST)
    stored = (tmp_path / "run.search" / search.TRIALS).read_text().splitlines()
    assert len(stored) == 2
    result = search_settings(rows, time="10m", trials=3, out=tmp_path / "run", **FAST)
    assert [json.loads(line)["settings"] for line in stored] == [trial.settings for trial in result.trials[:2]]
    assert len(result.trials) == 3


def test_a_search_that_was_stopped_in_its_final_training_goes_on(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*args: Any, out: Path, **options: Any) -> Any:
        result = train(*args, out=out, **options)
        if out == tmp_path / "run":
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patched:
        patched.setattr("regard.selection.search.train", stops)
        with pytest.raises(KeyboardInterrupt):
            search_settings(rows, time="10m", trials=1, out=tmp_path / "run", **FAST)
    result = search_settings(rows, time="10m", trials=1, out=tmp_path / "run", **FAST)
    assert len(result.trials) == 1
    assert not (tmp_path / "run.search").exists()


def test_a_baseline_without_settings_is_refused(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the baseline ngram is fitted at once and has no settings to search"):
        search_settings(rows, time="10m", preset="ngram", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_optuna_the_extra_is_named(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"regard\[search\]"):
        search_settings(rows, time="10m", out=tmp_path / "run", **FAST)
    assert not (tmp_path / "run").exists()


def test_a_duration_that_is_none(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a duration such as"):
        search_settings(rows, time="soon", out=tmp_path / "run", **FAST)


def test_the_best_trial() -> None:
    trials = [Trial(0, {}, 0.5, 1.0), Trial(1, {"lr": 1}, 0.7, 1.0), Trial(2, {"lr": 2}, None, 1.0)]
    assert best_trial(trials, higher=True).number == 1
    assert best_trial(trials, higher=False).number == 0
    assert best_trial([Trial(0, {}, 0.5, 1.0), Trial(1, {}, 0.5, 1.0)], higher=True).number == 0
    with pytest.raises(InputError, match="no trial has ended"):
        best_trial(trials[2:], higher=True)


def test_one_trial_is_no_search() -> None:
    first = Trial(0, {}, 0.5, 100.0)
    note = nothing_searched([first])
    assert note is not None
    assert note.endswith(
        "A second trial needs about 5.5 min in all, 10 trials about 19 min"
    )  # 3.3 and 11.3 times 100 s
    assert nothing_searched([first, Trial(1, {"lr": 1}, None, 50.0)]) == note  # others were stopped
    assert nothing_searched([first, Trial(1, {"lr": 1}, 0.4, 50.0)]) is None
    assert "one trial was asked for" in (nothing_searched([first], max_trials=1) or "")


def test_trials_with_more_epochs_take_longer() -> None:
    trials = [Trial(0, {}, 0.5, 100.0)]
    note = nothing_searched(trials, epochs=[1, 2, 3, 4, 6], default_epochs=2) or ""
    assert note.endswith("10 trials about 33 min")  # 16 and 1.3 * 3 times 100 s


def test_a_first_trial_that_was_shortened_counts_with_its_whole_length() -> None:
    note = nothing_searched([Trial(0, {"steps": 10}, 0.5, 10.0, 100.0)]) or ""
    assert "with the default settings and fewer steps. A second trial needs about 5.5 min" in note


def test_a_field_is_added(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"task": "classify"}')
    add_to_run(tmp_path, "search", {"trials": 3})
    assert json.loads((tmp_path / "run.json").read_text()) == {"task": "classify", "search": {"trials": 3}}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_beginning_of_the_final_training_is_noted(tmp_path: Path) -> None:
    assert not final_begun(tmp_path)
    mark_final(tmp_path)
    assert final_begun(tmp_path)
