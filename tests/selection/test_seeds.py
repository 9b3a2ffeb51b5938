"""Several seeds within a time: one model, whose weights are their mean, scored on rows that chose nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.sentence_encoder import write_sentence_encoder
from tests.training.helpers import WATER_ROWS

import regard
from regard.comparison.trainings.time_budget import BudgetGuard, OverBudget
from regard.errors import FolderError, InputError
from regard.selection import seeds
from regard.selection.seeds import seeds_in_time, train_seeds
from regard.training.output.metrics_log import TrainingEvent
from regard.training.train import train

Rows = list[dict[str, Any]]
FAST: dict[str, Any] = {"preset": "tiny-bert", "device": "cpu", "epochs": 1}


@pytest.mark.parametrize(
    ("done", "left", "refit", "expected"),
    [
        ([10.0], 0.0, True, (1, False)),
        ([10.0], 30.0, True, (3, False)),  # too little for two seeds and two trainings on all rows
        ([10.0], 40.0, True, (2, True)),
        ([10.0], 600.0, True, (5, True)),
        ([10.0], 600.0, False, (5, False)),
        ([10.0, 12.0, 11.0], -5.0, True, (3, False)),
    ],
)
def test_how_many_seeds_fit(done: list[float], left: float, refit: bool, expected: tuple[int, bool]) -> None:
    assert seeds_in_time(done, left, most=5, refit=refit) == expected


def test_the_mean_of_seeds_is_one_model(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    weights: dict[str, Any] = {}
    monkeypatch.setattr("regard.selection.seeds.shutil.rmtree", lambda path, **_: weights.setdefault(str(path), None))
    monkeypatch.setattr(seeds._SeedRuns, "_mean_helps", lambda *_: True)
    result = train_seeds(
        rows,
        time="10m",
        seeds=2,
        out=tmp_path / "run",
        progress=lambda event: messages.append(event.values["message"]),
        **FAST,
    )
    assert [run.seed for run in result.seeds] == [0, 1]
    assert result.used == (0, 1)
    assert (result.rows, result.dev_rows) == (60, 6)
    assert result.scores.keys() >= {"accuracy"}
    assert re.fullmatch(r"training 1, (10:00|9:\d\d) left", messages[0])
    assert messages[1].startswith("training 2 of 2")
    card = (tmp_path / "run" / "README.md").read_text()
    assert "The mean of 2 trainings of " in card
    assert "fitted at once" not in card
    assert [message.split(",")[1].strip() for message in messages[2:]] == ["training 1 of 2", "training 2 of 2"]
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["seeds"]["used"] == [0, 1]
    assert run["seeds"]["ended"] == result.ended == "at most 2 seeds are trained"
    assert run["refit"]["rows"] == 60
    states = {name: regard.load(tmp_path / name).network.state_dict() for name in _folders(tmp_path)}
    mean, *others = states.values()
    for name, weight in mean.items():
        torch.testing.assert_close(weight, torch.stack([other[name] for other in others]).mean(0))
    assert any(not torch.equal(others[0][name], others[1][name]) for name in mean)
    assert json.loads(json.dumps(result.json()))["seeds"][0]["seed"] == 0
    assert "seeds" in result._repr_html_()


def _folders(tmp_path: Path) -> list[str]:
    return ["run", *(str(path.relative_to(tmp_path)) for path in sorted((tmp_path / "run.seeds").glob("all-*")))]


def test_a_mean_that_is_worse_than_each_seed_is_not_used(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds._SeedRuns, "_mean_helps", lambda *_: False)
    result = train_seeds(rows, time="10m", seeds=2, refit="no", out=tmp_path / "run", **FAST)
    best = max(result.seeds, key=lambda run: run.score or 0.0)
    assert result.used == (best.seed,)
    assert result.ended.endswith("the mean of the seeds scored worse than each of them, so the best one is written")
    assert result.scores["accuracy"].value == pytest.approx(best.score)
    assert result.rows == 54
    assert not (tmp_path / "run.seeds").exists()


def test_few_labels_are_trained_once_and_then_on_all_rows(tmp_path: Path) -> None:
    start = write_sentence_encoder(tmp_path / "encoder", [row["text"] for row in WATER_ROWS])
    result = train_seeds(WATER_ROWS, time="10m", out=tmp_path / "run", start=start, device="cpu")
    assert len(result.seeds) == 1
    assert (result.rows, result.dev_rows) == (40, 4)
    assert "if a linear probe follows contrastive training" in result.ended
    with pytest.raises(FolderError, match=r"is not empty\. Use --overwrite to start over"):
        train_seeds(WATER_ROWS, time="10m", out=tmp_path / "run", start=start, device="cpu")


def test_little_time_is_one_short_training(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(BudgetGuard):
        def __call__(self, event: TrainingEvent) -> None:
            if event.kind == "log":
                raise OverBudget(1, 1, 9.0)

    monkeypatch.setattr("regard.comparison.trainings.time_budget.BudgetGuard", Slow)
    result = train_seeds(rows, time=0.1, out=tmp_path / "run", log_every=1, **FAST)
    assert len(result.seeds) == 1
    assert re.fullmatch(r"another seed would need \d+:\d\d with its scores, and 0:00 were left", result.ended)
    assert regard.load(tmp_path / "run").predict(["the film was superb"])


def test_what_was_stopped_goes_on(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(*args: Any, out: Path, **options: Any) -> Any:
        if Path(out).name == "seed-1":
            raise KeyboardInterrupt
        return train(*args, out=out, **options)

    options: dict[str, Any] = {"time": "10m", "seeds": 2, "refit": "no", "out": tmp_path / "run", **FAST}
    with monkeypatch.context() as patched:
        patched.setattr("regard.comparison.trainings.time_budget.train", stops)
        with pytest.raises(KeyboardInterrupt):
            train_seeds(rows, **options)
    before = (tmp_path / "run.seeds" / "seed-0" / "run.json").stat().st_mtime_ns
    times: list[int] = []
    monkeypatch.setattr(
        "regard.selection.seeds.shutil.rmtree",
        lambda path, **_: times.append((tmp_path / "run.seeds" / "seed-0" / "run.json").stat().st_mtime_ns),
    )
    assert len(train_seeds(rows, **options).seeds) == 2
    assert set(times) == {before}


def test_what_has_no_seeds_is_refused(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the baseline ngram is fitted at once"):
        train_seeds(rows, time="1m", preset="ngram", out=tmp_path / "run")
    with pytest.raises(InputError, match="weights of LoRA are not averaged"):
        train_seeds(rows, time="1m", lora={"rank": 4}, out=tmp_path / "run")
    with pytest.raises(InputError, match="expected at least 1"):
        train_seeds(rows, time="1m", seeds=0, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
