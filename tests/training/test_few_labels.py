"""A training with few labels by its defaults: contrastive steps and a linear probe, and what is said about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.sentence_encoder import write_sentence_encoder
from tests.training.helpers import WATER_ROWS as ROWS

import regard
from regard.training.engine.loop import Stopped
from regard.training.inputs.preview import choose_settings, explain_defaults, settings_to_repeat
from regard.training.output.metrics_log import TrainingEvent
from regard.training.settings import Lora


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentence_encoder(tmp_path_factory.mktemp("start") / "encoder", [row["text"] for row in ROWS])


@pytest.fixture
def plain(encoder: Path, trained_folder: Any) -> Path:
    """A training without the second one on all rows."""
    folder: Path = trained_folder(ROWS, start=encoder, refit="no")
    return folder


def test_the_folder_says_how_it_was_trained(encoder: Path, tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    result = regard.train(ROWS, out=tmp_path / "run", start=encoder, progress=events.append)
    assert (result.refit, result.validation_rows) == ("head", 4)
    assert regard.train(ROWS, out=tmp_path / "run", start=encoder, resume=True).refit == "head"
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["contrastive"] == {"steps": 18, "texts": 32, "lr": 1e-4, "repeats": 1, "once": True}
    assert run["initialization"]["seconds"] > 0
    assert run["refit"]["seconds"] > 0
    assert run["refit"]["head_only"]
    assert run["done"]["steps"] == 0
    chosen = {"head_init": "contrastive", "pooling": "mean", "refit": "yes", "dev_fraction": 0.1, "dtype": "fp32"}
    assert run["chosen"] == chosen
    assert run["seconds"] > run["initialization"]["seconds"] + run["refit"]["seconds"]
    assert [run["settings"][name] for name in ("epochs", "lr", "batch_tokens")] == [None, None, None]
    card = (tmp_path / "run/README.md").read_text()
    assert "18 steps with up to 32 texts and a learning rate of 0.0001" in card
    assert "on 40 rows." in card
    assert "a training on the other 36 rows; the head of the model here was then fitted on all 40." in card
    page = (tmp_path / "run/report.html").read_text()
    assert "The head of the one in the folder was then fitted on all 40 rows." in page
    assert "the head was fitted again on all 40 rows" in page
    assert "training, 18 contrastive steps" in page
    assert "contrastive (chosen)" in page
    assert [event.values["text"] for event in events if event.values.get("refit")] == [
        "fitting the head again on all 40 rows"
    ]
    assert "randomly initialized" not in card
    lines = next(event.values["lines"] for event in events if event.kind == "begin")
    assert any(line.startswith("contrastive: 18 steps of 32 texts at 0.0001 make the vectors") for line in lines)
    assert not any(line.startswith("unused") for line in lines)
    assert any("the head is fitted again on all rows" in line for line in lines)


def test_its_settings_repeat_it(encoder: Path) -> None:
    arguments: dict[str, Any] = {"start": encoder}
    assert choose_settings(ROWS, **arguments).epochs
    assert settings_to_repeat(ROWS, **arguments).epochs is None
    assert settings_to_repeat(ROWS, lr=1e-3, **arguments).lr == 1e-3
    assert settings_to_repeat(ROWS, head_init="probe", **arguments).epochs


def test_the_second_network_has_the_vectors_of_the_first(encoder: Path, plain: Path, trained_folder: Any) -> None:
    """Its head alone is fitted again, so that it differs from a run without the validation rows in the head only."""
    first, again = weights(plain), weights(trained_folder(ROWS, start=encoder, refit="yes"))
    other = {name for name in first if not torch.equal(first[name], again[name])}
    assert other
    assert all(name.startswith(("classifier", "bert.pooler")) for name in other)


@pytest.mark.parametrize("settings", [{"epochs": 1, "head_init": "contrastive"}, {"lora": Lora(rank=2)}])
def test_what_is_trained_further_is_trained_again_as_a_whole(
    encoder: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    regard.train(ROWS, out=tmp_path / "run", start=encoder, refit="yes", **settings)
    assert not json.loads((tmp_path / "run/run.json").read_text())["refit"]["head_only"]


def test_the_defaults_are_explained(encoder: Path) -> None:
    explained = {reason.name: reason for reason in explain_defaults(ROWS, start=encoder)}
    assert explained["head_init"].value == "contrastive"
    first = "18 contrastive steps of 32 texts at 0.0001 come before, without the validation rows"
    then = "then the head is fitted again, with them"
    assert explained["steps"].reason == f"{first}; {then}; more training made it worse on few rows"
    again = "there are few rows: the head is fitted again on all of them, validation rows too"
    assert explained["refit"].reason == again


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize(("name", "field", "value"), [("lr", "lr", 5e-4), ("batch_size", "texts", 8)])
def test_a_learning_rate_and_a_batch_size_are_for_its_steps(
    encoder: Path, plain: Path, tmp_path: Path, name: str, field: str, value: Any
) -> None:
    given: dict[str, Any] = {"start": encoder, "refit": "no", name: value}
    assert regard.train(ROWS, out=tmp_path / "run", **given).steps == 0
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["settings"][name] == run["contrastive"][field] == value
    first, other = weights(plain), weights(tmp_path / "run")
    assert any(not torch.equal(first[key], other[key]) for key in first if "encoder.layer" in key)
    explained = {reason.name: reason for reason in explain_defaults(ROWS, **given)}
    assert explained[name].value == f"{value:g}"
    assert explained[name].reason.startswith("given by you: ")
    assert f" {value:g} " in explained["steps"].reason


def test_settings_that_change_nothing_are_named(encoder: Path, plain: Path, tmp_path: Path) -> None:
    unused: dict[str, Any] = {"weight_decay": 0.5, "warmup": 0.5, "label_smoothing": 0.2}
    lines: list[str] = []

    def keep(event: TrainingEvent) -> None:
        lines.extend(event.values["lines"] if event.kind == "begin" else ())

    shared: dict[str, Any] = {"start": encoder, "refit": "no"}
    regard.train(ROWS, out=tmp_path / "unused", progress=keep, **shared, **unused)
    said = "unused: warmup, weight_decay, label_smoothing, since the weights are set without training"
    assert [line for line in lines if line.startswith("unused")] == [
        f"{said} steps; --epochs 3 trains on the labels too"
    ]
    first, other = weights(plain), weights(tmp_path / "unused")
    assert all(torch.equal(first[key], other[key]) for key in first)
    explained = {reason.name: reason.reason for reason in explain_defaults(ROWS, **shared, **unused)}
    assert all(explained[name].startswith("given by you, but unused") for name in unused)
    with pytest.raises(regard.InputError, match="nothing to repeat"):
        explain_defaults(ROWS, repeats=3, **shared)


def test_steps_on_the_labels_have_the_learning_rate(encoder: Path, tmp_path: Path) -> None:
    shared: dict[str, Any] = {"start": encoder, "refit": "no", "lr": 5e-4, "epochs": 1, "head_init": "contrastive"}
    regard.train(ROWS, out=tmp_path / "run", **shared)
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert (run["settings"]["lr"], run["contrastive"]["lr"]) == (5e-4, 1e-4)
    explained = {reason.name: reason for reason in explain_defaults(ROWS, **shared)}
    assert explained["contrastive"].reason.startswith("18 contrastive steps of 32 texts at 0.0001 and a linear probe")
    assert explained["lr"].value == "0.0005"


def test_ctrl_c_says_that_nothing_is_saved(encoder: Path, tmp_path: Path) -> None:
    def stop(event: TrainingEvent) -> None:
        if event.values.get("what") == "contrastive training":
            raise KeyboardInterrupt

    with pytest.raises(Stopped, match="stopped during contrastive training; nothing is saved yet"):
        regard.train(ROWS, out=tmp_path / "run", start=encoder, progress=stop)


def test_a_frozen_encoder_takes_no_contrastive_steps(encoder: Path, tmp_path: Path) -> None:
    regard.train(ROWS, out=tmp_path / "run", start=encoder, freeze=("encoder",))
    assert "contrastive" not in json.loads((tmp_path / "run/run.json").read_text())
    assert "A linear model was fitted at once" in (tmp_path / "run/README.md").read_text()
