"""What makes scores less reliable is an error before the trainings, or a note after them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from regard.comparison.caveats import majority_note, seen_notes, shortened_notes
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.jobs import Job
from regard.comparison.trainings.specs import LOADED, ModelSpec
from regard.data.records import ClassifyRecord, Record
from regard.errors import InputError
from regard.training.train import train


def test_a_model_that_has_seen_the_test_rows(two_classes: Path, tmp_path: Path) -> None:
    train(two_classes, preset="ngram", out=tmp_path / "model")
    specs = [ModelSpec("model", LOADED, start=str(tmp_path / "model"))]
    with pytest.raises(InputError, match="model was trained on the rows that it would be tested on"):
        seen_notes(load_compared_data(two_classes), specs)
    with pytest.raises(InputError, match="its score would be meaningless"):
        seen_notes(load_compared_data(two_classes, test=_half(two_classes, tmp_path, 0)), _trained_on_half(tmp_path))
    new = load_compared_data(two_classes, test=_half(two_classes, tmp_path, 1))
    assert seen_notes(new, _trained_on_half(tmp_path)) == []


def test_a_few_test_rows_are_enough_to_know(two_classes: Path, tmp_path: Path) -> None:
    seen = _half(two_classes, tmp_path, 0).read_text().splitlines()
    new = _half(two_classes, tmp_path, 1).read_text().splitlines()
    few, some = tmp_path / "few.csv", tmp_path / "some.csv"
    few.write_text("\n".join(seen[:7]) + "\n", encoding="utf-8")
    some.write_text("\n".join([*seen[:7], *new[1:60]]) + "\n", encoding="utf-8")
    model = _trained_on_half(tmp_path)
    with pytest.raises(InputError, match=r"would be tested on \([56] of 6 rows\)"):  # one may be a validation row
        seen_notes(load_compared_data(two_classes, test=few), model)
    (note,) = seen_notes(load_compared_data(two_classes, test=some), model)
    assert re.match(r"[56] of 65 rows of the test are also in the training data of other; its score is too high", note)


def _half(data: Path, folder: Path, part: int) -> Path:
    head, *rows = data.read_text(encoding="utf-8").splitlines()
    path = folder / f"half-{part}.csv"
    text = "\n".join([head, *(f"x{part} {row}" for row in rows[part * 120 : part * 120 + 120])])
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _trained_on_half(folder: Path) -> list[ModelSpec]:
    if not (folder / "other").exists():
        train(folder / "half-0.csv", preset="ngram", out=folder / "other")
    return [ModelSpec("other", LOADED, start=str(folder / "other"))]


def test_a_shortened_training_is_noted(tmp_path: Path) -> None:
    job = Job(ModelSpec("static", "baseline", preset="static"))
    assert list(shortened_notes(tmp_path, [job])) == []
    (tmp_path / "models" / "static").mkdir(parents=True)
    file = tmp_path / "models" / "static" / "static-seed-0.steps.json"
    file.write_text(json.dumps({"steps": 1, "planned": 384, "seconds": 5.0}), encoding="utf-8")
    (note,) = shortened_notes(tmp_path, [job])
    assert note.startswith("static: only 1 of 384 training steps fit into its 5 s, so its score may be far below")


def test_the_score_of_the_most_frequent_label() -> None:
    records: list[Record] = [ClassifyRecord("t", label) for label in ("a", "b", "b", "b")]
    assert majority_note(records, "accuracy") == 'always answering "b" would be right in 75.0 % of the test rows'
    assert majority_note(records, "macro_f1") is None
