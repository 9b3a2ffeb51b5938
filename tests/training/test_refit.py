"""Training again on all rows, once the best epoch is known."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.sentence_encoder import write_sentence_encoder
from tests.training.helpers import WATER_ROWS as ROWS

import regard
from regard.checkpoint.source import from_preset
from regard.data.records import PairRecord
from regard.errors import InputError
from regard.training import pipeline
from regard.training.defaults.recipes import SimilarityTraining, default_refit
from regard.training.engine.loop import Stopped, fit
from regard.training.head_init import initializer, similarity
from regard.training.inputs.preview import explain_defaults
from regard.training.job import TrainingJob
from regard.training.output.metrics_log import TrainingEvent

FEW_ROWS = "scores of 4 validation rows say little; --folds 5 (regard.cross_validate) scores every row"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A tiny sentence encoder."""
    return write_sentence_encoder(tmp_path / "encoder", [row["text"] for row in ROWS])


PAIRS = [
    {"first": row["text"], "second": ROWS[number // 2]["text"], "label": "far" if number % 3 else "near"}
    for number, row in enumerate(ROWS)
]


@pytest.fixture
def train_pairs(encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Trainings that learn similarity from few pairs."""
    few = SimilarityTraining(pairs=64, per_step=8, lr=1e-4)
    monkeypatch.setattr("regard.training.head_init.initializer.similarity_training", lambda *_, **__: few)

    def run(out: str, **settings: Any) -> Any:
        return regard.train(PAIRS, out=tmp_path / out, start=encoder, epochs=1, refit="yes", log_every=1, **settings)

    return run


@pytest.fixture
def train(encoder: Path, tmp_path: Path) -> Callable[..., Any]:
    def run(out: str, **settings: Any) -> Any:
        return regard.train(
            ROWS, out=tmp_path / out, **{"start": encoder, "epochs": 1, "head_init": "probe", **settings}
        )

    return run


def notes(events: list[TrainingEvent]) -> list[str]:
    return [event.values["text"] for event in events if event.kind == "note"]


def test_few_rows_are_all_trained_on_in_the_end(train: Callable[..., Any], tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    result = train("few", progress=events.append)
    assert notes(events) == [FEW_ROWS, "training again on all 40 rows"]
    assert result.rows == 40
    run = json.loads((tmp_path / "few/run.json").read_text())
    assert (run["data"]["train_rows"], run["data"]["dev_rows"], run["refit"]["rows"]) == (36, 4, 40)
    assert {"accuracy", "macro_f1"} <= result.scores.keys()
    assert train("few", resume=True).rows == 40


def test_the_linear_probe_is_scored_first(train: Callable[..., Any]) -> None:
    events: list[TrainingEvent] = []
    train("probe", progress=events.append, refit="no")
    assert next(event.step for event in events if event.kind == "score") == 0
    assert notes(events) == [FEW_ROWS]


def test_a_probe_that_is_not_improved_is_kept(train: Callable[..., Any], tmp_path: Path) -> None:
    """With a learning rate that ruins the network, the first weights stay the best: the written head is the probe."""
    train("probe", lr=10.0, refit="no")
    train("again", lr=10.0, refit="yes")
    run = json.loads((tmp_path / "probe/run.json").read_text())
    assert run["done"]["best_step"] == 0
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("probe", "again"))
    assert not one["classifier.weight"].equal(other["classifier.weight"])  # fitted to all rows
    same = "bert.encoder.layer.0.output.dense.weight"
    assert one[same].equal(other[same])


def test_contrastive_training_needs_no_further_steps(train: Callable[..., Any], tmp_path: Path) -> None:
    """With few rows of few classes it is the default, and all rows are used in the end."""
    events: list[TrainingEvent] = []
    result = train("contrastive", epochs=None, head_init="auto", progress=events.append)
    assert (result.steps, result.rows) == (0, 40)
    assert result.scores["accuracy"].value == 1.0
    whats = {event.values["what"] for event in events if event.kind == "fit"}
    assert whats == {"contrastive training", "computing vectors"}
    explained = explain_defaults(ROWS, start=tmp_path / "encoder")
    assert {reason.name: reason.value for reason in explained}.items() >= {
        "head_init": "contrastive",
        "steps": "0",
    }.items()


def test_steps_after_contrastive_training_are_possible(train: Callable[..., Any]) -> None:
    assert train("contrastive", epochs=1, head_init="contrastive", refit="no").steps > 0


def test_stopped_while_training_again(train: Callable[..., Any], tmp_path: Path) -> None:
    again = False

    def stop(event: TrainingEvent) -> None:
        nonlocal again
        again = again or bool(event.values.get("refit") and event.kind == "note")
        if again and event.kind == "log":
            os.kill(os.getpid(), signal.SIGINT)

    saved = r"the state of the first training is saved in .*cut\. Go on from here"
    train("whole", log_every=1)
    with pytest.raises(Stopped, match=rf"stopped while training again on all rows; {saved}"):
        train("cut", log_every=1, progress=stop)
    assert train("cut", log_every=1, resume=True).rows == 40
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "cut/model.safetensors").read_bytes()


@pytest.mark.parametrize(("refit", "again"), [("auto", False), ("yes", True)])
def test_not_by_default_if_an_earlier_epoch_is_the_best(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, refit: str, again: bool
) -> None:
    monkeypatch.setattr(pipeline, "fit", lambda job: replace(fit(job), best_step=1))
    events: list[TrainingEvent] = []
    train("early", epochs=2, refit=refit, progress=events.append)
    earlier = "the weights of step 1 are better than the last: not trained again on all rows"
    assert notes(events) == [FEW_ROWS, "training again on all 40 rows" if again else earlier]


def test_nothing_to_add_without_validation_rows(train: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="refit='yes' was given, but there are no validation rows"):
        train("all", dev_fraction=0, refit="yes")


def test_pairs_learn_similarity_once_for_both_trainings(
    train_pairs: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    learn = similarity.train_similarity

    def counted(job: TrainingJob, records: Sequence[PairRecord], *arguments: Any, **options: Any) -> None:
        calls.append(len(records))
        learn(job, records, *arguments, **options)

    monkeypatch.setattr(initializer, "train_similarity", counted)
    train_pairs("whole")
    run = json.loads((tmp_path / "whole/run.json").read_text())
    assert calls == [run["data"]["train_rows"]]  # the texts of the validation rows are not used
    assert run["refit"]["rows"] == 40


def test_pairs_that_are_stopped_while_training_again_end_with_the_same_weights(
    train_pairs: Callable[..., Any], tmp_path: Path
) -> None:
    again = False

    def stop(event: TrainingEvent) -> None:
        nonlocal again
        again = again or (event.kind == "note" and event.values["text"].startswith("training again"))
        if again and event.kind == "log":
            raise KeyboardInterrupt

    train_pairs("whole")
    with pytest.raises(Stopped, match="the state of the first training is saved"):
        train_pairs("cut", progress=stop)
    train_pairs("cut", resume=True)
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "cut/model.safetensors").read_bytes()


def test_by_default_where_it_takes_seconds() -> None:
    config = from_preset("bert-mini", weights=False).config
    assert default_refit(config, 20, probe=True, gpu=False)
    assert default_refit(config, 1_000, probe=False, gpu=True)
    assert not default_refit(config, 1_000, probe=False, gpu=False)
    assert not default_refit(config, 1_000_000, probe=True, gpu=True)
