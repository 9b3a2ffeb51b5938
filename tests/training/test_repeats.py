"""Repeated trainings: the mean of their weights, by hand; stopped and resumed; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.sentence_encoder import write_sentence_encoder
from tests.training.helpers import WATER_ROWS, Digest, stop_at

import regard
from regard.errors import InputError
from regard.training.defaults.recipes import SimilarityTraining
from regard.training.engine.loop import Stopped, fit
from regard.training.head_init.similarity import LEARNING

SETTINGS: dict[str, Any] = {"epochs": 2, "lr": 1e-3, "batch_size": 8, "device": "cpu", "log_every": 1}
OTHER = (("cold", "a"), ("warm", "b"), ("water", "b"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "model"
    return write_sentence_encoder(folder, [row["text"] for row in WATER_ROWS])


def train(encoder: Path, out: Path, **settings: Any) -> Any:
    more = {"start": encoder, "head_init": "random", "dev_fraction": 0.0, **SETTINGS, **settings}
    return regard.train(WATER_ROWS, out=out, **more)


def stop_in(number: int) -> Callable[[Any], None]:
    """A progress callback that stops the training with this number, at its fourth step."""
    stop, trainings = stop_at(4), 1

    def progress(event: Any) -> None:
        nonlocal trainings
        trainings += bool(event.values.get("repeat"))
        if trainings == number:
            stop(event)

    return progress


def test_the_weights_are_the_mean(encoder: Path, tmp_path: Path) -> None:
    """Two trainings with seeds in a row, from the same initial weights, which are those of the first seed."""
    events: list[Any] = []
    result = train(encoder, tmp_path / "mean", repeats=2, seed=4, progress=events.append)
    assert (result.repeats, result.steps) == (2, 10)
    assert train(encoder, tmp_path / "mean", repeats=2, seed=4, resume=True).repeats == 2
    train(encoder, tmp_path / "one", seed=4)
    train(encoder, tmp_path / "two", seed=5, initial_seed=4)
    mean, one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("mean", "one", "two"))
    assert any(not torch.equal(one[name], two[name]) for name in one)
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (one[name] + two[name]) / 2, rtol=1e-5, atol=1e-7)
    notes = [event.values["text"] for event in events if event.kind == "note"]
    assert "training again with another seed (2 of 2)" in notes
    lines = next(event.values["lines"] for event in events if event.kind == "begin")
    assert "repeats: 2 such trainings with other seeds, whose weights are averaged; --repeats 1 trains once" in lines
    run = json.loads((tmp_path / "mean/run.json").read_text())
    assert (run["done"]["repeats"], run["settings"]["repeats"]) == (2, 2)
    assert "The mean of 2 trainings with other seeds, each of 10 steps" in (tmp_path / "mean/README.md").read_text()


def test_the_score_is_that_of_the_mean(encoder: Path, tmp_path: Path) -> None:
    rows = [{"text": f"{word} water {number}", "label": label} for number in range(90, 99) for word, label in OTHER]
    result = train(encoder, tmp_path / "run", repeats=3, dev_fraction=None, dev=rows)
    scores = regard.evaluate(tmp_path / "run", rows).scores
    assert {name: score.value for name, score in result.scores.items()} == pytest.approx(
        {name: scores[name].value for name in result.scores}
    )


def test_all_rows_are_trained_on_as_often(encoder: Path, tmp_path: Path) -> None:
    events: list[Any] = []
    train(encoder, tmp_path / "run", repeats=2, dev_fraction=0.25, refit="yes", progress=events.append)
    notes = [event.values["text"] for event in events if event.kind == "note"]
    assert notes.count("training again with another seed (2 of 2)") == 2
    begin = next(event for event in events if event.kind == "begin")
    assert begin.values["trainings"] == 4


@pytest.mark.parametrize("number", [1, 2])
def test_a_stopped_run_goes_on(encoder: Path, tmp_path: Path, digest: Digest, number: int) -> None:
    """In the first training, or in the second, which begins again then."""
    train(encoder, tmp_path / "whole", repeats=2)
    with pytest.raises(Stopped, match=r"state is saved|first training is saved"):
        train(encoder, tmp_path / "run", repeats=2, progress=stop_in(number))
    train(encoder, tmp_path / "run", repeats=2, resume=True)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_pairs_learn_similarity_once_if_its_weights_are_saved(
    encoder: Path, tmp_path: Path, digest: Digest, monkeypatch: pytest.MonkeyPatch, saves: bool, number: int
) -> None:
    """Every training begins from the weights that similarity leaves: a CPU saves them, a GPU computes them again."""
    if not saves:
        monkeypatch.setattr("regard.training.pipeline.fit", lambda job: fit(replace(job, saves_initial=False)))
    short = SimilarityTraining(pairs=40, per_step=8, lr=1e-3)
    monkeypatch.setattr("regard.training.head_init.initializer.similarity_training", lambda *_, **__: short)
    rows = [{"first": row["text"], "second": "cold water", "label": row["label"]} for row in WATER_ROWS]
    options: dict[str, Any] = {"start": encoder, "repeats": 2, **SETTINGS, "dev_fraction": 0.0}
    whole: list[Any] = []
    regard.train(rows, out=tmp_path / "whole", progress=whole.append, **options)
    with pytest.raises(Stopped):
        regard.train(rows, out=tmp_path / "run", progress=stop_in(number), **options)
    assert (tmp_path / "run/state/initial.safetensors").exists() == saves
    rest: list[Any] = []
    regard.train(rows, out=tmp_path / "run", resume=True, progress=rest.append, **options)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    begun = next(event.values["lines"] for event in rest if event.kind == "begin")
    steps = next(event.steps for event in rest if event.kind == "begin")
    where = f"goes on after step 4 of {steps}" if number == 1 else "the first of 2 trainings is done"
    assert any(where in line for line in begun)
    assert any(line.startswith("similarity:") for line in begun) != saves
    learned = [{event.values.get("what") for event in events if event.kind == "fit"} for events in (whole, rest)]
    assert [LEARNING in what for what in learned] == [True, not saves]
    assert not (tmp_path / "run/state").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"preset": "tiny-bert", "start": None}, r"repeats=2 was given, but networks from scratch end too far"),
        ({"lora": 4}, r"repeats=2 was given, but weights of LoRA are not averaged"),
        ({"head_init": "contrastive", "epochs": None}, r"repeats=2 .* set without training steps.*Give epochs"),
    ],
)
def test_weights_without_a_useful_mean_are_refused(
    encoder: Path, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        train(encoder, tmp_path / "run", repeats=2, **settings)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_steps_are_used_again_on_a_gpu(encoder: Path, tmp_path: Path) -> None:
    for name, settings in (("mean", {"repeats": 2, "seed": 4}), ("one", {"seed": 4}), ("two", {"seed": 5})):
        train(encoder, tmp_path / name, **settings, initial_seed=4, device="cuda", compile="no")
    mean, one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("mean", "one", "two"))
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (one[name] + two[name]) / 2, rtol=1e-4, atol=1e-6)
