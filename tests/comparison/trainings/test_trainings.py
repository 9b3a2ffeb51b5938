"""The trainings of a comparison: names of models, rows, jobs, and what they cost."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.comparison.conftest import write_rows

import regard
from regard.comparison.trainings.compared_data import load_compared_data, words_per_sample
from regard.comparison.trainings.jobs import Job, JobFolder, _settings, run_job, scored_rows
from regard.comparison.trainings.measure import LATENCY_TEXTS, median_latency, peak_memory, reset_peak_memory
from regard.comparison.trainings.specs import ModelSpec, model_spec


@pytest.mark.parametrize(
    ("name", "kind", "preset", "start"),
    [
        ("ngram", "baseline", "ngram", None),
        ("probe:bert-mini", "baseline", "probe", "bert-mini"),
        ("bert-mini", "from scratch", "bert-mini", None),
        ("preset:bert-base-uncased", "from scratch", "bert-base-uncased", None),
        ("start:bert-mini", "fine-tuned", None, "bert-mini"),
        ("minilm", "fine-tuned", None, "minilm"),
    ],
)
def test_names(name: str, kind: str, preset: str | None, start: str | None) -> None:
    assert model_spec(name, task="classify", labels=None) == ModelSpec(name, kind, preset, start)


def test_folders_are_loaded_or_fine_tuned(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a small text\n" * 30, encoding="utf-8")
    regard.pretrain([tmp_path / "t.txt"], preset="tiny-bert", out=tmp_path / "language", steps=1)
    spec = model_spec(str(tmp_path / "language"), task="classify", labels=None)
    assert (spec.name, spec.kind, spec.start) == ("language", "fine-tuned", str(tmp_path / "language"))


def test_a_trained_folder_that_fits_is_loaded(trained: dict[str, Path]) -> None:
    assert model_spec(str(trained["good"]), task="classify", labels=["warm", "cold"]).kind == "loaded"


def test_the_slug_is_a_folder_name() -> None:
    assert ModelSpec("org/some model", "fine-tuned").slug == "org-some-model"


def test_parts_have_no_row_in_common(two_classes: Path) -> None:
    data = load_compared_data(two_classes)
    parts = [{record.input_texts for record in part} for part in (data.labeled.train, data.labeled.dev, data.test)]
    assert [len(part) for part in parts] == [173, 19, 48]
    assert len(set.union(*parts)) == 240
    assert data.identity == load_compared_data(two_classes).identity
    assert words_per_sample(data.test) == 6.0


def test_a_folder_with_splits(tmp_path: Path) -> None:
    for name, rows, word in (("train", 60, "many"), ("valid", 20, "few"), ("test", 40, "some")):
        path = write_rows(tmp_path / f"{name}.csv", rows)
        path.write_text(path.read_text(encoding="utf-8").replace("many", word), encoding="utf-8")
    data = load_compared_data(tmp_path)
    assert (len(data.labeled.train), len(data.labeled.dev), len(data.test)) == (60, 20, 40)
    assert data.test_source == "test split of the data"
    assert not data.labeled.split_off


def test_smaller_parts_are_inside_of_larger_ones_and_have_all_labels(two_classes: Path) -> None:
    data = load_compared_data(two_classes)
    parts = [data.part(fraction) for fraction in (1 / 64, 1 / 8, 1 / 2, 1)]
    assert [len(part.train) for part in parts] == [3, 22, 86, 173]
    rows = [{record.input_texts for record in part.train} for part in parts]
    assert rows[0] < rows[1] < rows[2] < rows[3]
    assert all({record.stratum for record in part.train} == {"'warm'", "'cold'"} for part in parts)
    assert len({part.fingerprint for part in parts}) == 4


def test_labels_and_rows_that_are_in_one_part_only(two_classes: Path, tmp_path: Path) -> None:
    test = write_rows(tmp_path / "test.csv", 300)
    text = test.read_text(encoding="utf-8").replace(" of many", " of all")
    test.write_text(text + "warm gray number 3 of many,warm\nnew,hot\n", encoding="utf-8")
    data = load_compared_data(two_classes, test=test)
    assert data.notes == (
        "1 test row of 302 are also in the training data; scores are too high",
        "1 label of the test rows not in the training data: hot",
    )
    assert data.task.labels == ("cold", "hot", "warm")


def test_a_job_is_done_once_and_its_rows_are_read_back(
    trained: dict[str, Path], two_classes: Path, tmp_path: Path
) -> None:
    data = load_compared_data(two_classes)
    job = Job(ModelSpec("good", "loaded", start=str(trained["good"])))
    files = JobFolder(tmp_path, job)
    assert files.finished() is None
    result = run_job(job, data, tmp_path, settings={})
    assert files.finished() == result == run_job(job, data, tmp_path, settings={})
    meter, table = scored_rows(files, result)
    assert table.rows == len(data.test)
    predictions = [json.loads(line) for line in files.predictions.read_text(encoding="utf-8").splitlines()]
    right = sum(line["gold"] == line["label"] for line in predictions) / len(predictions)
    assert table.value("accuracy") == meter.scores()["accuracy"].value == right
    info = regard.load(trained["good"]).info()
    assert (result.parameters, result.bytes) == (info.parameters, info.bytes)


def test_a_damaged_result_is_not_used(trained: dict[str, Path], two_classes: Path, tmp_path: Path) -> None:
    job = Job(ModelSpec("weak", "loaded", start=str(trained["weak"])))
    run_job(job, load_compared_data(two_classes), tmp_path, settings={})
    path = JobFolder(tmp_path, job).result
    path.write_text(path.read_text(encoding="utf-8").replace('"parameters": ', '"parameters": 1'), encoding="utf-8")
    assert JobFolder(tmp_path, job).finished() is None


def test_baselines_that_are_fitted_at_once_take_no_epochs() -> None:
    given = {"epochs": 3, "device": "cpu"}
    for name in ("ngram", "probe"):
        assert _settings(Job(ModelSpec(name, "baseline", preset=name), 1), given) == {"seed": 1, "device": "cpu"}
    for spec in (ModelSpec("static", "baseline", preset="static"), ModelSpec("a", "from scratch", preset="a")):
        assert _settings(Job(spec), given) == {"seed": 0, **given}


def test_scoring_and_timing_report_how_far_they_are(
    trained: dict[str, Path], two_classes: Path, tmp_path: Path
) -> None:
    data = load_compared_data(two_classes)
    events: list[regard.TrainingEvent] = []
    job = Job(ModelSpec("good", "loaded", start=str(trained["good"])))
    run_job(job, data, tmp_path, settings={}, training=events.append)
    assert {event.kind for event in events} == {"test"}
    scoring = [event for event in events if event.values == {"what": "scoring", "unit": "rows"}]
    timing = [event for event in events if event.values == {"what": "timing", "unit": "texts"}]
    assert scoring + timing == events
    assert [scoring[0].step, scoring[-1].step, scoring[-1].steps] == [0, len(data.test), len(data.test)]
    assert [event.step for event in timing] == list(range(LATENCY_TEXTS + 1))


def test_latency_is_the_median() -> None:
    waits = iter([0.0] * 3 + [0.002] * 29 + [0.05])
    latency = median_latency(lambda _: time.sleep(next(waits)), list(range(30)))
    assert 1.5 < latency < 20
    assert median_latency(lambda _: None, []) == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be reset on Linux only")
def test_the_peak_of_memory_starts_again() -> None:
    block = np.ones(40_000_000)  # 320 MB
    high = peak_memory()
    del block
    reset_peak_memory()
    low = peak_memory()
    assert high is not None
    assert low is not None
    assert high - low > 150_000_000
