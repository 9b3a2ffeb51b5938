"""`regard.compare`: from data and names of models to a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.comparison.conftest import write_rows

import regard
from regard.comparison.state import read_results
from regard.comparison.trainings import jobs
from regard.errors import FolderError

QUICK: dict[str, Any] = {"steps": 8, "lr": 0.01}
TABLE = ("name", "kind", "scores", "seeds", "parameters", "bytes")


def table(result: regard.Comparison) -> list[dict[str, Any]]:
    """What does not depend on the speed of the machine."""
    return [{name: getattr(model, name) for name in TABLE} for model in result.models]


@pytest.fixture(scope="module")
def whole(two_classes: Path, trained: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> regard.Comparison:
    """A comparison of two networks and a loaded model, with two seeds."""
    out = tmp_path_factory.mktemp("compare") / "out"
    return regard.compare(two_classes, models=["tiny-bert", "ngram", trained["weak"]], out=out, seeds=2, **QUICK)


def test_every_model_is_scored_on_the_same_rows(whole: regard.Comparison) -> None:
    assert (whole.task, whole.metric, whole.test) == ("classify", "accuracy", "split off")
    assert whole.rows == 48
    assert whole.train_rows + whole.dev_rows == 192
    assert {model.name: (model.kind, len(model.seeds)) for model in whole.models} == {
        "tiny-bert": ("from scratch", 2),
        "ngram": ("baseline", 2),
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
    names: list[str | Path] = ["tiny-bert", "ngram", trained["weak"]]
    assert whole.folder is not None
    again = regard.compare(two_classes, models=names, out=whole.folder, seeds=2, **QUICK)
    assert table(again) == table(whole)
    assert again.pairs == whole.pairs
    assert again.test_uses == 1


class Killed(BaseException):
    """What ends a process: nothing handles it."""


def test_killed_twice_it_ends_with_the_same_table(two_classes: Path, tmp_path: Path) -> None:
    names = ["tiny-bert", "tiny-roberta"]
    short: dict[str, Any] = {"steps": 4, "lr": 0.01}
    expected = regard.compare(two_classes, models=names, out=tmp_path / "whole", **short)
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
            regard.compare(two_classes, models=names, out=out, log_every=1, **kill_in(model, 2), **short)
    assert seen.count("tiny-bert") > 0
    resumed = regard.compare(two_classes, models=names, out=out, log_every=1, **short)
    assert table(resumed) == table(expected)
    assert resumed.pairs == expected.pairs


def test_a_model_that_fails_is_reported_and_the_others_go_on(two_classes: Path, tmp_path: Path) -> None:
    result = regard.compare(two_classes, models=["ngram", "tiny-gpt2"], out=tmp_path / "out")
    assert [model.name for model in result.models] == ["ngram", "tiny-gpt2"]
    assert result.models[1].error is not None
    assert result.best == "ngram"
    assert read_results(tmp_path / "out") == result


def test_a_test_set_is_used_once(two_classes: Path, trained: dict[str, Path], tmp_path: Path) -> None:
    test = write_rows(tmp_path / "test.csv", 400)
    test.write_text(test.read_text(encoding="utf-8").replace("many", "few"), encoding="utf-8")
    options: dict[str, Any] = {"test": test, "out": tmp_path / "out"}
    first = regard.compare(two_classes, models=["ngram"], **options)
    assert (first.test, first.rows, first.test_uses) == ("test data", 400, 1)
    assert first.train_rows + first.dev_rows == 240
    second = regard.compare(two_classes, models=["ngram", trained["weak"]], **options)
    assert second.test_uses == 2
    assert any("used 2 times" in note for note in second.notes)


def test_another_comparison_in_the_folder(whole: regard.Comparison, messages: Path, tmp_path: Path) -> None:
    assert whole.folder is not None
    with pytest.raises(FolderError, match="differs in: training rows, test rows"):
        regard.compare(messages, models=["tiny-bert"], out=whole.folder, **QUICK)
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FolderError, match="holds no comparison"):
        regard.compare(messages, models=["tiny-bert"], out=tmp_path, overwrite=True, **QUICK)
    assert (tmp_path / "mine.txt").exists()


def test_few_test_rows_give_no_verdict(trained: dict[str, Path], tmp_path: Path) -> None:
    data = write_rows(tmp_path / "few.csv", 60)
    result = regard.compare(data, models=["ngram", trained["weak"]])
    assert result.rows == 12
    assert "No verdict: 12 rows, expected at least 30" in result.verdict
    assert result.folder is None
    assert result.models[0].folder is None


def test_learning_curves(two_classes: Path, tmp_path: Path) -> None:
    result = regard.compare(two_classes, models=["ngram"], out=tmp_path / "out", curve=True)
    (curve,) = result.curves
    assert curve.rows == (11, 22, 43, 86, 173)
    assert list(curve.predicted) == [346, 692]
    assert all(score.low <= score.value <= score.high <= 1 for score in curve.predicted.values())
    assert (tmp_path / "out" / "learning_curves.png").exists()
    assert not (tmp_path / "out" / "models" / "ngram" / "ngram-seed-0-part-16").exists()
    assert read_results(tmp_path / "out") == result


PAIRS = "sentence1,sentence2,score\n" + "".join(f"a cat {n},the cat {n % 7},{n % 5 / 4}\n" for n in range(60))
TAGS = "".join(f"Ada{n} B-PER\nsang{n} O\n\n" for n in range(60))
QUESTIONS = "".join(
    json.dumps({"id": str(n), "context": f"Ada came in {n % 20}", "question": f"who {n}?", "answers": ["Ada"]}) + "\n"
    for n in range(60)
)
TRANSLATIONS = "".join(json.dumps({"source": f"a b {n}", "target": f"b a {n}"}) + "\n" for n in range(60))


@pytest.mark.parametrize(
    ("name", "content", "model", "task", "metric"),
    [
        ("a.csv", PAIRS, "tiny-bert", "pair", "pearson"),
        ("a.conll", TAGS, "ngram", "tag", "f1"),
        ("a.jsonl", QUESTIONS, "tiny-bert", "answer", "f1"),
        ("a.jsonl", TRANSLATIONS, "tiny-transformer", "translate", "bleu"),
    ],
)
def test_every_task_has_a_score(tmp_path: Path, name: str, content: str, model: str, task: str, metric: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    settings: dict[str, Any] = {} if model == "ngram" else {"steps": 1}
    result = regard.compare(tmp_path / name, models=[model], **settings)
    assert (result.task, result.metric) == (task, metric)
    if task == "answer":
        assert any("paragraphs" in note for note in result.notes)
