"""From data to a folder, and what is said where the data, the folder, the disk or the device will not do."""

from __future__ import annotations

import errno
import json
import signal
from pathlib import Path
from typing import Any, Protocol

import pytest
import torch
from safetensors.torch import save_file

import regard
from regard import samples
from regard.errors import DataError, FolderError, InputError, RegardError
from regard.tasks.classify import Classify
from regard.tasks.language.masked import Masked
from regard.tasks.task import Loss
from regard.training.engine.loop import Stopped
from regard.training.engine.stepper import Stepper
from regard.training.output.metrics_log import TrainingEvent
from regard.training.result import TrainResult
from regard.training.resume import state


class Write(Protocol):
    def __call__(self, path: Path, rows: Any) -> Path: ...


class Reviews(Protocol):
    def __call__(self, count: int, seed: int = 0) -> list[tuple[str, str]]: ...


QUICK: dict[str, Any] = {"preset": "tiny-bert", "epochs": 1, "batch_size": 8, "lr": 1e-3, "device": "cpu"}


def train(data: Any, out: Path, **changed: Any) -> TrainResult:
    result: TrainResult = regard.train(data, out=out, **{**QUICK, **changed})
    return result


def test_a_model_is_trained_scored_and_written(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "run.json", "metrics.jsonl"} <= names
    assert "state" not in names
    run = json.loads((trained / "run.json").read_text())
    assert (run["task"], run["task_settings"]["labels"]) == ("classify", ["bad", "good"])
    assert run["scores"]["accuracy"]["value"] > 0.9
    assert regard.load(trained, device="cpu").predict(["lovely and warm"])[0].json()["label"] == "good"


def test_of_equal_scores_the_lower_loss_is_the_best(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, "good" if number % 8 else "bad") for number, (text, _) in enumerate(reviews(48))]
    told: list[TrainingEvent] = []
    found = train(write_rows(tmp_path / "uneven.csv", rows), tmp_path / "run", epochs=3, lr=1e-4, progress=told.append)
    scores = [event for event in told if event.kind == "score"]
    assert len({event.values["scores"]["accuracy"] for event in scores}) == 1  # all rows get the common label
    losses = [event.values["dev_loss"] for event in scores]
    assert losses == sorted(losses, reverse=True)
    assert [event.values["best"] for event in scores] == [True, True, True]
    assert json.loads((tmp_path / "run/run.json").read_text())["done"]["best_step"] == found.steps


@pytest.mark.parametrize("preset", ["tiny-gpt2", "tiny-t5"])
def test_a_family_without_the_head_is_told(tmp_path: Path, reviews_csv: Path, preset: str) -> None:
    family = preset.removeprefix("tiny-")
    says = (
        rf"classify needs a sequence head, but models of the family {family} \(.*Start from an encoder such as minilm"
    )
    with pytest.raises(InputError, match=says):
        train(reviews_csv, tmp_path / "run", preset=preset)
    folder = regard.create(preset).save(tmp_path / "start")
    with pytest.raises(InputError, match=says):
        train(reviews_csv, tmp_path / "run", preset=None, start=folder)


def test_one_article_cannot_be_split(tmp_path: Path) -> None:
    asked = [
        {"id": str(number), "question": f"who came {number}?", "answers": [{"text": "Ida", "answer_start": 0}]}
        for number in range(20)
    ]
    article = {"title": "visits", "paragraphs": [{"context": "Ida came.", "qas": asked}]}
    (tmp_path / "one.json").write_text(json.dumps({"version": "1.1", "data": [article]}))
    with pytest.raises(
        InputError, match=r"20 records in 1 group leave none.*records of more groups.*with dev; dev_fraction=0"
    ):
        train(tmp_path / "one.json", tmp_path / "run")


def test_what_was_recognised_and_chosen_is_told(tmp_path: Path, reviews_csv: Path) -> None:
    told: list[TrainingEvent] = []
    found = train(reviews_csv, tmp_path / "run", lr=None, progress=told.append)
    first = told[0]
    words = "\n".join(first.values["lines"])
    assert first.kind == "begin"
    assert "classify (text=text, label=label)" in words
    assert "72 training rows, 8 validation rows (10 % split)" in words
    assert "chosen: lr " in words
    assert "epochs" not in words.split("chosen:")[1]
    assert told[-1].kind == "score"
    assert set(found.json()) >= {"task", "rows", "scores", "seconds", "folder"}


def test_a_preset_with_room_for_more_words_is_no_cause_to_warn(tmp_path: Path, reviews_csv: Path) -> None:
    train(reviews_csv, tmp_path / "run", preset="bert-tiny", steps=1, epochs=None)
    assert regard.load(tmp_path / "run", device="cpu").config.vocabulary < 30_522


# data that will not do


def test_a_label_that_only_dev_has_is_found_before_training(
    tmp_path: Path, reviews_csv: Path, write_rows: Write
) -> None:
    dev = write_rows(tmp_path / "dev.csv", [("some other text", "good"), ("and one more", "goood")])
    told: list[TrainingEvent] = []
    with pytest.raises(DataError, match=r'dev.csv line 3, column label: the label "goood".*Did you mean "good"\?'):
        train(reviews_csv, tmp_path / "run", dev=dev, progress=told.append)
    assert told == []


def test_a_label_with_one_row_is_learned_wherever_it_falls(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [*reviews(40), *[(f"something else altogether {number}", f"rare{number}") for number in range(4)]]
    found = train(write_rows(tmp_path / "rare.csv", rows), tmp_path / "run", steps=1, epochs=None)
    assert found.task == "classify"
    assert len(regard.load(tmp_path / "run", device="cpu").labels or ()) == 6


def test_one_class_only(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    data = write_rows(tmp_path / "one.csv", [(text, "good") for text, _ in reviews(20)])
    with pytest.raises(InputError, match=r'one label only \("good"\); there is nothing to learn'):
        train(data, tmp_path / "run")


def test_a_number_that_is_a_word(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, number / 10 if number != 7 else "fair") for number, (text, _) in enumerate(reviews(40))]
    with pytest.raises(DataError, match=r'stars.csv line 9, column label: is "fair"; expected a number'):
        train(write_rows(tmp_path / "stars.csv", rows), tmp_path / "run")


def test_a_dev_set_that_is_the_training_set(tmp_path: Path, reviews_csv: Path) -> None:
    with pytest.raises(InputError, match="80 of 80 validation rows are also in the training data"):
        train(reviews_csv, tmp_path / "run", dev=reviews_csv)


def test_a_few_rows_in_both_are_said(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = reviews(40)
    data = write_rows(tmp_path / "train.csv", rows)
    dev = write_rows(tmp_path / "dev.csv", [*reviews(20, seed=1), rows[0]])
    with pytest.warns(UserWarning, match="1 of 21 validation rows are also in the training data"):
        train(data, tmp_path / "run", dev=dev, steps=1, epochs=None)


def test_regression_is_learned_and_scored(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, 0.5 if label == "good" else -0.5) for text, label in reviews(60)]
    found = train(write_rows(tmp_path / "numbers.csv", rows), tmp_path / "run", epochs=6, lr=5e-3)
    assert found.scores["pearson"].value > 0.5
    good, bad = regard.load(tmp_path / "run", device="cpu").predict(["lovely and warm", "cold and dull"])
    assert good.json()["value"] > bad.json()["value"]


# folders


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path, reviews_csv: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match=r"is not empty\. Use --resume to go on, --overwrite to begin again"):
        train(reviews_csv, folder)
    train(reviews_csv, folder, steps=1, epochs=None, overwrite=True)
    assert (folder / "thesis.txt").read_text() == "years of work"
    with pytest.raises(FolderError, match="its training ended, and nothing is left to resume"):
        train(reviews_csv, folder, resume=True)


def test_nothing_to_resume(tmp_path: Path, reviews_csv: Path) -> None:
    with pytest.raises(FolderError, match="holds no training that could be resumed"):
        train(reviews_csv, tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="were both given; give one of them"):
        train(reviews_csv, tmp_path / "run", resume=True, overwrite=True)


# settings


def test_a_setting_that_does_not_exist(tmp_path: Path, reviews_csv: Path) -> None:
    with pytest.raises(InputError, match=r'there is no setting "epocs". Did you mean "epochs"\?'):
        train(reviews_csv, tmp_path / "run", epocs=3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lr": "fast"}, "lr is 'fast', expected a number"),
        ({"batch_size": 2.5}, "batch_size is 2.5, expected a whole number"),
        ({"schedule": "cosin"}, 'Did you mean "cosine"'),
        ({"gradient_checkpointing": "yes"}, "expected true or false"),
        ({"lora": {"rnk": 4}}, "some of rank, alpha, dropout"),
        ({"epochs": 0}, "expected more than 0"),
    ],
)
def test_a_value_that_will_not_do(tmp_path: Path, reviews_csv: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        train(reviews_csv, tmp_path / "run", **given)


def test_names_of_the_trainer_are_understood(tmp_path: Path, reviews_csv: Path) -> None:
    old: dict[str, Any] = {
        "learning_rate": 2e-3,
        "num_train_epochs": 1,
        "per_device_train_batch_size": 16,
        "evaluation_strategy": "no",
    }
    with pytest.warns(UserWarning, match="is (called|not needed)") as said:
        regard.train(reviews_csv, out=tmp_path / "run", preset="tiny-bert", device="cpu", **old)
    words = [str(one.message) for one in said]
    assert '"learning_rate" is called "lr" here.' in words
    assert any(one.startswith('"evaluation_strategy" is not needed') for one in words)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert (settings["lr"], settings["epochs"], settings["batch_size"]) == (2e-3, 1, 16)


# the machine


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_stopped_and_resumed_it_ends_the_same(tmp_path: Path, reviews_csv: Path) -> None:
    train(reviews_csv, tmp_path / "whole", epochs=2)

    def stop(event: TrainingEvent) -> None:
        if event.kind == "log" and event.step == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped, match=r"stopped at step 4 of 20.*--resume") as stopped:
        train(reviews_csv, tmp_path / "run", epochs=2, log_every=2, progress=stop)
    assert stopped.value.signal == signal.SIGINT
    train(reviews_csv, tmp_path / "run", epochs=2, log_every=5, resume=True)
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_a_full_disk_loses_nothing(tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(reviews_csv, tmp_path / "whole", epochs=2)
    saved = 0

    def full(tensors: Any, path: Any) -> None:
        nonlocal saved
        saved += 1
        if saved == 5:  # in the middle of the second state
            raise OSError(errno.ENOSPC, "No space left on device")
        save_file(tensors, path)

    with monkeypatch.context() as patch:
        patch.setattr(state, "save_file", full)
        with pytest.raises(FolderError, match=r"No space left on device.*The state saved before is kept.*--resume"):
            train(reviews_csv, tmp_path / "run", epochs=2, save_every=3)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["metrics.jsonl", "state"]
    train(reviews_csv, tmp_path / "run", epochs=2, save_every=3, resume=True)
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_too_little_memory_is_met_with_smaller_parts(
    tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[TrainingEvent] = []
    part = Stepper.part

    def small(self: Stepper, inputs: Any) -> None:
        if inputs.tokens.ids.numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory")
        part(self, inputs)

    monkeypatch.setattr(Stepper, "part", small)
    found = train(reviews_csv, tmp_path / "run", progress=told.append)
    assert any("out of memory" in event.values.get("text", "") for event in told)
    assert found.steps == 10


def test_no_memory_at_all_is_said(tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Stepper, inputs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Stepper, "part", none)
    with pytest.raises(RegardError, match=r"not enough memory for 1 token at once\. Use a smaller batch_tokens"):
        train(reviews_csv, tmp_path / "run")


def test_too_little_memory_for_a_score_is_met_with_smaller_batches(
    tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it runs out: in the network, or in the loss of what it said. The training itself is not touched."""
    train(reviews_csv, tmp_path / "whole")
    loss, told = Classify.loss, list[TrainingEvent]()

    def small(self: Classify, output: Any, inputs: Any) -> Loss:
        if inputs.rows > 3 and torch.is_inference_mode_enabled():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return loss(self, output, inputs)

    monkeypatch.setattr(Classify, "loss", small)
    train(reviews_csv, tmp_path / "run", progress=told.append)
    assert not any("out of memory" in event.values.get("text", "") for event in told)
    scores = [json.loads((tmp_path / name / "run.json").read_text())["scores"] for name in ("whole", "run")]
    assert scores[0] == scores[1]


def test_too_little_memory_for_text_that_is_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, text = Masked.loss, samples.path("corpus")

    def small(self: Masked, output: Any, inputs: Any) -> Loss:
        if inputs.rows > 3 and torch.is_inference_mode_enabled():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return loss(self, output, inputs)

    monkeypatch.setattr(Masked, "loss", small)
    found = regard.pretrain([text], out=tmp_path / "run", preset="tiny-bert", steps=1, window=64, device="cpu")
    assert found.scores["masked_accuracy"].value >= 0
