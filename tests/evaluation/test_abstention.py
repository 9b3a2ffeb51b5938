"""Calibration and abstaining, from a training to its predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard import cli, samples
from regard.errors import FolderError, InputError
from regard.tasks.classify import Classify, LabelAnswer, LabelsAnswer

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Path]
Reviews = Callable[..., list[tuple[str, str]]]
QUICK: dict[str, Any] = {"device": "cpu", "preset": "tiny-bert", "steps": 40, "lr": 2e-3}


@pytest.fixture
def messages(trained_folder: Callable[..., Path]) -> Path:
    return trained_folder(samples.path("messages"), **QUICK)


def run_json(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return content


def with_task_settings(folder: Path, target: Path, **settings: Any) -> Path:
    """A copy of a model folder with other settings of its task."""
    regard.load(folder, device="cpu").save(target)
    run = run_json(target)
    run["task_settings"] |= settings
    (target / "run.json").write_text(json.dumps(run))
    return target


def test_a_temperature_is_fitted_stored_and_applied(messages: Path, tmp_path: Path) -> None:
    run = run_json(messages)
    temperature = run["task_settings"]["temperature"]
    assert temperature != 1
    assert set(run["calibration"]) == {"error", "error_before"}
    plain = with_task_settings(messages, tmp_path / "plain", temperature=1.0)
    both = [regard.load(folder, device="cpu").predict(["where is my parcel"])[0] for folder in (messages, plain)]
    ours, theirs = (answer for answer in both if isinstance(answer, LabelAnswer))
    assert ours.scores is not None
    assert theirs.scores is not None
    logits = {name: np.log(chance) for name, chance in theirs.scores.items()}
    scaled = np.exp(np.array(list(logits.values())) / temperature)
    assert list(ours.scores.values()) == pytest.approx((scaled / scaled.sum()).tolist(), abs=1e-5)
    assert ours.label == theirs.label
    assert f"divide them by {temperature:.6g}" in (messages / "README.md").read_text()


def test_folders_of_before_have_no_temperature(messages: Path, tmp_path: Path) -> None:
    old = with_task_settings(messages, tmp_path / "old")
    run = run_json(old)
    del run["task_settings"]["temperature"], run["task_settings"]["thresholds"]
    (old / "run.json").write_text(json.dumps(run))
    assert (regard.load(old, device="cpu").predict(["x"])[0].confidence or 0) > 0


@pytest.mark.parametrize(
    "settings", [{"temperature": 0}, {"temperature": "hot"}, {"temperature": float("nan")}, {"thresholds": [0.5]}]
)
def test_a_broken_temperature_is_refused(messages: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    broken = with_task_settings(messages, tmp_path / "broken", **settings)
    with pytest.raises((FolderError, InputError), match=r"temperature|thresholds|task_settings"):
        regard.load(broken, device="cpu").predict(["x"])


def test_few_validation_rows_are_not_tuned_on(tmp_path: Path) -> None:
    regard.train(samples.path("messages"), out=tmp_path / "run", dev_fraction=0.05, **{**QUICK, "steps": 2})
    assert run_json(tmp_path / "run")["task_settings"]["temperature"] == 1


def tagged_rows(count: int, *, seed: int) -> list[dict[str, Any]]:
    """Texts with rare labels: a word makes a label likely, not certain, so its probability is often below one half."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        words = random.choice(["sun", "rain", "wind", "snow", "fog", "calm"], size=3, replace=False).tolist()
        labels = [word for word in words if word != "calm" and random.random() < 0.42]
        rows.append({"text": " ".join([*words, f"day {random.integers(9)}"]), "label": labels})
    return rows


def test_thresholds_of_labels_are_tuned_and_raise_micro_f1_on_other_rows(tmp_path: Path) -> None:
    settings = {**QUICK, "steps": 150, "batch_tokens": 1024}
    regard.train(tagged_rows(900, seed=0), out=tmp_path / "run", labels="multi", dev_fraction=0.3, **settings)
    thresholds = run_json(tmp_path / "run")["task_settings"]["thresholds"]
    assert len(thresholds) == 5
    fixed = with_task_settings(tmp_path / "run", tmp_path / "fixed", thresholds=None)
    test = tagged_rows(600, seed=1)
    tuned, half = (regard.evaluate(folder, test).scores["micro_f1"].value for folder in (tmp_path / "run", fixed))
    assert tuned > half + 0.05
    assert "A label is predicted above its threshold" in (tmp_path / "run/README.md").read_text()


def test_answers_below_a_confidence_are_marked(messages: Path) -> None:
    model = regard.load(messages, device="cpu")
    texts = ["where is my parcel", "thank you", "a"]
    plain = model.predict(texts)
    limit = sorted(answer.confidence or 0.0 for answer in plain)[1]
    marked = model.predict(texts, abstain=limit)
    assert [answer.abstained for answer in marked] == [(answer.confidence or 0) < limit for answer in plain]
    assert sum(bool(answer.abstained) for answer in marked) == 1
    assert "abstained" not in plain[0].json()
    assert marked[0].json().keys() - plain[0].json().keys() == {"abstained"}
    assert "abstained" in repr(marked[0])


def test_the_confidence_of_several_labels_is_that_of_all() -> None:
    answer = LabelsAnswer(labels=("a",), scores={"a": 0.9, "b": 0.2})
    assert answer.confidence == pytest.approx(0.72)
    assert LabelsAnswer(labels=(), scores={}).confidence == 1


def test_numbers_have_no_confidence(tmp_path: Path) -> None:
    rows = [{"text": f"text {number}", "label": number / 3} for number in range(40)]
    regard.train(rows, out=tmp_path / "run", labels="number", **{**QUICK, "steps": 2})
    model = regard.load(tmp_path / "run", device="cpu")
    with pytest.raises(InputError, match=r"abstain=0.5 needs answers with a confidence"):
        model.predict(["x"], abstain=0.5)
    assert regard.evaluate(model, rows).calibration is None
    with pytest.raises(InputError, match="no probability of being right"):
        regard.evaluate(model, rows).plot_reliability(tmp_path / "x.png")


@pytest.mark.parametrize("value", [-0.1, 1.2, float("nan")])
def test_a_confidence_is_a_probability(messages: Path, value: float) -> None:
    model = regard.load(messages, device="cpu")
    with pytest.raises(InputError, match="from 0 to 1"):
        model.predict(["x"], abstain=value)
    with pytest.raises(InputError, match="from 0 to 1"):
        regard.evaluate(model, samples.path("messages"), abstain=value)


def test_coverage_and_scores_are_those_of_the_answered_rows(messages: Path, tmp_path: Path) -> None:
    plain = regard.evaluate(messages, samples.path("messages"), output=tmp_path / "answers.jsonl")
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    limit = float(np.median([json.loads(line)["score"] for line in lines]))
    result = regard.evaluate(messages, samples.path("messages"), abstain=limit, output=tmp_path / "answers.jsonl")
    assert result.scores == plain.scores
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    answered = [answer for answer in answers if not answer["abstained"]]
    abstention, calibration = result.abstention, result.calibration
    assert abstention is not None
    assert calibration is not None
    assert abstention.coverage.value == len(answered) / len(answers)
    assert abstention.scores["accuracy"].value >= result.scores["accuracy"].value
    assert calibration.accuracy == pytest.approx(result.scores["accuracy"].value)
    assert result.json()["abstention"]["below"] == limit
    nothing = regard.evaluate(messages, samples.path("messages"), abstain=1.0).abstention
    assert nothing is not None
    assert (nothing.coverage.value, nothing.scores) == (0, {})


def test_the_command_line(messages: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("where is my parcel\nthank you\n")
    command = ["predict", str(messages), "--input", "texts.txt", "--output", "out.csv"]
    assert cli.main([*command, "--abstain", "0.9"]) == 0
    header, first, _ = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "text,label,score,scores,abstained,truncated,windows"
    assert first.endswith(("true,false,1", "false,false,1"))
    assert cli.main(["predict", str(messages), "x", "--abstain", "2"]) == 1
    data = str(samples.path("messages"))
    capsys.readouterr()
    assert cli.main(["evaluate", str(messages), data, "--abstain", "0.5", "--reliability", "r.svg"]) == 0
    printed = capsys.readouterr().out
    assert "calibration error" in printed
    assert "answered with a confidence of at least 0.5" in printed
    assert (tmp_path / "r.svg").exists()
    assert cli.main(["evaluate", str(messages), data, "--reliability", "r.txt"]) == 1


def test_a_task_with_a_temperature_of_its_own() -> None:
    with pytest.raises(InputError, match="expected a number above 0"):
        Classify(names=("a", "b"), temperature=-1)
    with pytest.raises(InputError, match="expected one for each"):
        Classify(kind="multi", names=("a", "b"), thresholds=(0.5,))
    task = Classify(kind="multi", names=("a", "b"), temperature=2.0, thresholds=(0.1, 0.9))
    assert Classify.from_settings(json.loads(json.dumps(task.settings()))) == task
