"""`regard.compare`: from data and names of models to a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.comparison.conftest import write_rows

import regard
from regard import samples
from regard.comparison.state import read_results
from regard.comparison.trainings import jobs
from regard.errors import FolderError, InputError

QUICK: dict[str, Any] = {"steps": 8, "lr": 0.01}
TABLE = ("name", "kind", "scores", "seeds", "parameters", "bytes")


def table(result: regard.Comparison) -> list[dict[str, Any]]:
    """What does not depend on the speed of the machine."""
    return [{name: getattr(model, name) for name in TABLE} for model in result.models]


@pytest.fixture(scope="module")
def whole(two_classes: Path, trained: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> regard.Comparison:
    """A comparison of two networks and a loaded model, with two seeds."""
    out = tmp_path_factory.mktemp("compare") / "out"
    return regard.compare(two_classes, models=["tiny-bert", "tiny-roberta", trained["weak"]], out=out, seeds=2, **QUICK)


def test_every_model_is_scored_on_the_same_rows(whole: regard.Comparison) -> None:
    assert (whole.task, whole.metric, whole.test) == ("classify", "accuracy", "split off")
    assert whole.rows == 48
    assert whole.train_rows + whole.dev_rows == 192
    assert {model.name: (model.kind, len(model.seeds)) for model in whole.models} == {
        "tiny-bert": ("from scratch", 2),
        "tiny-roberta": ("from scratch", 2),
        "weak": ("loaded", 1),
    }
    values = [model.scores["accuracy"].value for model in whole.models]
    assert values == sorted(values, reverse=True)
    for model in whole.models:
        assert model.scores["accuracy"].low <= model.scores["accuracy"].value <= model.scores["accuracy"].high
        assert model.latency_ms > 0
        assert model.texts_per_second > 0
        assert model.bytes > 0
        assert model.parameters > 0
        assert model.memory_bytes is None or model.memory_bytes > 10**7
    assert len(whole.pairs) == 3
    assert whole.best == whole.models[0].name
    assert f"{whole.best} has the best accuracy" in whole.verdict
    assert "Cheapest model within 1 point of the best: " in whole.verdict


def test_the_rule_of_thumb(whole: regard.Comparison) -> None:
    rule = whole.rule_of_thumb
    assert rule is not None
    assert (rule.samples, rule.words_per_sample, rule.expects) == (192, 6.0, "n-grams")
    assert "192 samples / 6 words per sample = 32, below 1,500" in rule.sentence


def test_files_of_a_comparison(whole: regard.Comparison) -> None:
    assert whole.folder is not None
    folder = Path(whole.folder)
    assert {path.name for path in folder.iterdir()} == {
        "comparison.json",
        "results.json",
        "pareto.png",
        "report.html",
        "models",
        "predictions",
    }
    assert read_results(folder) == whole
    assert json.loads((folder / "results.json").read_text(encoding="utf-8"))["best"] == whole.best
    answers = (folder / "predictions" / "tiny-bert-seed-0.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(answers) == whole.rows
    assert {"text", "gold", "label", "score"} <= json.loads(answers[0]).keys()
    assert regard.load(folder / "models" / "tiny-bert" / "tiny-bert-seed-1").task == "classify"


def test_a_finished_comparison_is_not_trained_again(
    whole: regard.Comparison, two_classes: Path, trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "train_within", lambda *_, **__: pytest.fail("trained again"))
    names: list[str | Path] = ["tiny-bert", "tiny-roberta", trained["weak"]]
    assert whole.folder is not None
    again = regard.compare(two_classes, models=names, out=whole.folder, seeds=2, **QUICK)
    assert table(again) == table(whole)
    assert again.pairs == whole.pairs
    assert again.test_uses == 1


class Killed(BaseException):
    """What ends a process: nothing handles it."""


def test_killed_twice_it_ends_with_the_same_table(two_classes: Path, tmp_path: Path) -> None:
    names = ["tiny-bert", "tiny-roberta"]
    expected = regard.compare(two_classes, models=names, out=tmp_path / "whole", **QUICK)
    seen = []

    def kill_in(model: str, step: int) -> Any:
        current = [""]

        def on_model(progress: regard.Progress) -> None:
            current[0] = progress.values["model"]

        def on_training(event: regard.TrainingEvent) -> None:
            seen.append(current[0])
            if current[0] == model and event.kind == "log" and event.step >= step:
                raise Killed

        return {"progress": on_model, "training": on_training}

    out = tmp_path / "killed"
    for model in names:
        with pytest.raises(Killed):
            regard.compare(two_classes, models=names, out=out, log_every=1, **kill_in(model, 3), **QUICK)
    assert seen.count("tiny-bert") > 0
    resumed = regard.compare(two_classes, models=names, out=out, log_every=1, **QUICK)
    assert table(resumed) == table(expected)
    assert resumed.pairs == expected.pairs


def test_a_model_that_fails_is_reported_and_the_others_go_on(two_classes: Path, tmp_path: Path) -> None:
    result = regard.compare(two_classes, models=["tiny-bert", "tiny-gpt2"], out=tmp_path / "out", **QUICK)
    assert [model.name for model in result.models] == ["tiny-bert", "tiny-gpt2"]
    assert result.models[1].error is not None
    assert result.best == "tiny-bert"
    assert read_results(tmp_path / "out") == result


def test_no_model_can_be_compared(two_classes: Path) -> None:
    with pytest.raises(InputError, match=r"no model could be compared\. tiny-gpt2: "):
        regard.compare(two_classes, models=["tiny-gpt2"], **QUICK)


def test_a_test_set_is_used_once(two_classes: Path, tmp_path: Path) -> None:
    test = write_rows(tmp_path / "test.csv", 400)
    test.write_text(test.read_text(encoding="utf-8").replace("many", "few"), encoding="utf-8")
    options: dict[str, Any] = {"test": test, "out": tmp_path / "out", **QUICK}
    first = regard.compare(two_classes, models=["tiny-bert"], **options)
    assert (first.test, first.rows, first.test_uses) == ("test data", 400, 1)
    assert first.train_rows + first.dev_rows == 240
    second = regard.compare(two_classes, models=["tiny-bert", "tiny-roberta"], **options)
    assert second.test_uses == 2
    assert any("used 2 times" in note for note in second.notes)


def test_test_rows_that_are_training_rows(two_classes: Path) -> None:
    with pytest.raises(InputError, match="240 of 240 test rows are also in the training data"):
        regard.compare(two_classes, models=["tiny-bert"], test=two_classes, **QUICK)


def test_another_comparison_in_the_folder(whole: regard.Comparison, messages: Path, tmp_path: Path) -> None:
    assert whole.folder is not None
    with pytest.raises(FolderError, match="differs in: training rows, test rows"):
        regard.compare(messages, models=["tiny-bert"], out=whole.folder, **QUICK)
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FolderError, match="holds no comparison"):
        regard.compare(messages, models=["tiny-bert"], out=tmp_path, overwrite=True, **QUICK)
    assert (tmp_path / "mine.txt").exists()


def test_few_test_rows_give_no_verdict(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "few.csv", 60)
    result = regard.compare(data, models=["tiny-bert", "tiny-roberta"], **QUICK)
    assert result.rows == 12
    assert "No verdict: 12 rows, expected at least 30" in result.verdict
    assert result.folder is None
    assert result.models[0].folder is None


def test_learning_curves(two_classes: Path, tmp_path: Path) -> None:
    result = regard.compare(two_classes, models=["ngram"], out=tmp_path / "out", curve=True, **QUICK)
    (curve,) = result.curves
    assert curve.rows == (11, 22, 43, 86, 173)
    assert list(curve.predicted) == [346, 692]
    assert all(score.low <= score.value <= score.high <= 1 for score in curve.predicted.values())
    assert (tmp_path / "out" / "learning_curves.png").exists()
    assert not (tmp_path / "out" / "models" / "ngram" / "ngram-seed-0-part-16").exists()
    assert read_results(tmp_path / "out") == result


def test_other_tasks_with_a_score(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    rows = [f"a cat {number},the cat {number % 7},{number % 5 / 4}" for number in range(60)]
    pairs.write_text("sentence1,sentence2,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    numbers = regard.compare(pairs, models=["tiny-bert", "tiny-roberta"], steps=2)
    assert (numbers.task, numbers.metric) == ("pair", "pearson")
    tags = regard.compare(samples.path("places"), models=["tiny-bert", "tiny-roberta"], steps=2)
    assert (tags.task, tags.metric) == ("tag", "f1")
    questions = regard.compare(samples.path("questions"), models=["tiny-bert"], steps=2)
    assert (questions.task, questions.metric) == ("answer", "f1")
    texts = samples.path("english-spanish")
    translated = regard.compare(texts, models=["tiny-transformer"], test_fraction=0.1, steps=2)
    assert (translated.task, translated.metric) == ("translate", "bleu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["tinny-bert"]}, 'Did you mean "tiny-bert"'),
        ({"models": []}, "expected names of models"),
        ({"models": ["tiny-bert", "tiny-bert"]}, "named twice"),
        ({"models": ["tiny-bert"], "seeds": 0}, "seeds is 0"),
        ({"models": ["tiny-bert"], "time": "soon"}, "expected a duration"),
        ({"models": ["tiny-bert"], "metric": "acuracy"}, 'Did you mean "accuracy"'),
        ({"models": ["tiny-bert"], "test_fraction": 1.5}, "test_fraction is 1.5"),
        ({"models": ["tiny-bert"], "columns": {"group": "book"}}, "book"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str, two_classes: Path) -> None:
    with pytest.raises((InputError, regard.DataError), match=message):
        regard.compare(two_classes, **options, **QUICK)


def test_one_class_in_the_training_rows(tmp_path: Path) -> None:
    data = tmp_path / "one.csv"
    data.write_text("text,label\n" + "".join(f"row {number},same\n" for number in range(50)), encoding="utf-8")
    with pytest.raises(InputError, match="one label only"):
        regard.compare(data, models=["tiny-bert"], **QUICK)
