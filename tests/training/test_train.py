"""From data to a folder, and what is said where the data, the folder, the disk or the device will not do."""

from __future__ import annotations

import errno
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file
from tests.training.helpers import Reviews, Write, train

import regard
from regard.data.batching.examples import Examples
from regard.data.batching.masked_words import MaskedWordsSource
from regard.errors import DataError, FolderError, InputError
from regard.training.engine.loop import Stopped
from regard.training.output.metrics_log import TrainingEvent
from regard.training.resume import state


def test_a_model_is_trained_scored_and_written(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "run.json", "metrics.jsonl"} <= names
    assert "state" not in names
    run = json.loads((trained / "run.json").read_text())
    assert (run["task"], run["task_settings"]["labels"]) == ("classify", ["bad", "good"])
    assert run["scores"]["accuracy"]["value"] > 0.9
    assert regard.load(trained, device="cpu").predict(["lovely and warm"])[0].json()["label"] == "good"


@pytest.mark.parametrize("preset", ["tiny-gpt2", "tiny-t5"])
def test_a_family_without_the_head_is_reported(tmp_path: Path, reviews_csv: Path, preset: str) -> None:
    family = preset.removeprefix("tiny-")
    message = (
        rf"classify needs a sequence head, but models of the family {family} \(.*Start from an encoder such as minilm"
    )
    with pytest.raises(InputError, match=message):
        train(reviews_csv, tmp_path / "run", preset=preset)
    folder = regard.create(preset).save(tmp_path / "start")
    with pytest.raises(InputError, match=message):
        train(reviews_csv, tmp_path / "run", preset=None, start=folder)


def test_recognized_data_and_chosen_settings_are_reported(tmp_path: Path, reviews_csv: Path) -> None:
    events: list[TrainingEvent] = []
    result = train(reviews_csv, tmp_path / "run", lr=None, progress=events.append)
    first = events[0]
    words = "\n".join(first.values["lines"])
    assert first.kind == "begin"
    assert "classify (text=text, label=label)" in words
    assert "72 training rows, 8 validation rows (10 % split)" in words
    assert "chosen: lr " in words
    assert "epochs" not in words.split("chosen:")[1]
    assert [event.kind for event in events[-2:]] == ["score", "note"]
    assert events[-1].values["text"].startswith("scores of 8 validation rows say little")
    assert set(result.json()) >= {"task", "rows", "scores", "seconds", "folder"}


def test_a_vocabulary_smaller_than_the_preset_gives_no_warning(tmp_path: Path, reviews_csv: Path) -> None:
    train(reviews_csv, tmp_path / "run", preset="bert-tiny", steps=1, epochs=None)
    assert regard.load(tmp_path / "run", device="cpu").config.vocabulary < 30_522


# data that will not do


def test_a_label_with_one_row_is_learned_wherever_it_falls(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [*reviews(40), *[(f"something else altogether {number}", f"rare{number}") for number in range(4)]]
    result = train(write_rows(tmp_path / "rare.csv", rows), tmp_path / "run", steps=1, epochs=None)
    assert result.task == "classify"
    assert len(regard.load(tmp_path / "run", device="cpu").labels or ()) == 6


def test_one_class_only(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    data = write_rows(tmp_path / "one.csv", [(text, "good") for text, _ in reviews(20)])
    with pytest.raises(InputError, match=r'one label only \("good"\); there is nothing to learn'):
        train(data, tmp_path / "run")


def test_a_number_that_is_a_word(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, number / 10 if number != 7 else "fair") for number, (text, _) in enumerate(reviews(40))]
    with pytest.raises(DataError, match=r'stars.csv line 9, column label: is "fair"; expected a number'):
        train(write_rows(tmp_path / "stars.csv", rows), tmp_path / "run")


def test_regression_is_learned_and_scored(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, 0.5 if label == "good" else -0.5) for text, label in reviews(60)]
    result = train(write_rows(tmp_path / "numbers.csv", rows), tmp_path / "run", epochs=6, lr=5e-3)
    assert result.scores["pearson"].value > 0.5
    good, bad = regard.load(tmp_path / "run", device="cpu").predict(["lovely and warm", "cold and dull"])
    assert good.json()["value"] > bad.json()["value"]


# folders


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path, reviews_csv: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match=r"is not empty\. Use --resume to continue its training, or --overwrite"):
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
    ("options", "message"),
    [
        ({"lr": "fast"}, "lr is 'fast', expected a number"),
        ({"batch_size": 2.5}, "batch_size is 2.5, expected a whole number"),
        ({"schedule": "cosin"}, 'Did you mean "cosine"'),
        ({"gradient_checkpointing": "yes"}, "expected true or false"),
        ({"lora": {"rnk": 4}}, "some of rank, alpha, dropout"),
        ({"epochs": 0}, "expected more than 0"),
    ],
)
def test_a_value_that_will_not_do(tmp_path: Path, reviews_csv: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train(reviews_csv, tmp_path / "run", **options)


# the machine


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_stopped_and_resumed_it_ends_the_same(tmp_path: Path, reviews_csv: Path) -> None:
    train(reviews_csv, tmp_path / "whole", epochs=2)

    def stop(event: TrainingEvent) -> None:
        if event.kind == "log" and event.step == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped, match=r"stopped at step 4 of 18.*--resume") as stopped:
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


def test_words_are_masked_in_half_of_the_texts(
    tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs: list[int] = []
    original = MaskedWordsSource.epoch

    def counted(self: MaskedWordsSource, number: int) -> Examples:
        epochs.append(number)
        return original(self, number)

    monkeypatch.setattr(MaskedWordsSource, "epoch", counted)
    train(reviews_csv, tmp_path / "run", explainable=True, epochs=2)
    assert {0, 1} <= set(epochs)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["explainable"] is True


def test_masked_words_are_for_tasks_with_answers_about_a_text(tmp_path: Path) -> None:
    pairs = [{"source": f"a man {n}", "target": f"ein Mann {n}"} for n in range(30)]
    with pytest.raises(InputError, match=r"explainable was given, but the task is translate"):
        regard.train(pairs, preset="tiny-transformer", out=tmp_path / "run", explainable=True, dev_fraction=0)
