"""From data to a folder, and what is said where the data, the folder, the disk or the device will not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.training.helpers import Reviews, Write, metrics, train

import regard
from regard.errors import FolderError, InputError
from regard.training.output.metrics_log import TrainingEvent


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


def test_words_are_masked_on_request(tmp_path: Path, reviews_csv: Path) -> None:
    """Masked words change the losses, from the first step on."""
    losses = []
    for explainable in (False, True):
        out = tmp_path / str(explainable)
        train(reviews_csv, out, explainable=explainable, steps=2, epochs=None, log_every=1, dropout=0.0)
        losses.append([line["loss"] for line in metrics(out) if line["kind"] == "log"])
        assert json.loads((out / "run.json").read_text())["settings"]["explainable"] is explainable
    assert losses[0][0] != losses[1][0]


def test_masked_words_are_for_tasks_with_answers_about_a_text(tmp_path: Path) -> None:
    pairs = [{"source": f"a man {n}", "target": f"ein Mann {n}"} for n in range(30)]
    with pytest.raises(InputError, match=r"explainable was given, but the task is translate"):
        regard.train(pairs, preset="tiny-transformer", out=tmp_path / "run", explainable=True, dev_fraction=0)
