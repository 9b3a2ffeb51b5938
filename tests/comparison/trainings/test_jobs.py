"""One training and scoring of a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import regard
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.jobs import Job, JobFolder, _settings, run_job, scored_rows
from regard.comparison.trainings.measure import LATENCY_TEXTS
from regard.comparison.trainings.specs import ModelSpec


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
