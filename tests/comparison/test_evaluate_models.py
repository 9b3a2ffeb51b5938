"""`regard evaluate A B DATA`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.comparison.conftest import write_rows

import regard
from regard.comparison.evaluate_models import evaluate_models, model_names


def test_two_models_on_the_same_rows(trained: dict[str, Path], two_classes: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    result = evaluate_models(
        [trained["good"], trained["weak"]], two_classes, slices=["length", "label", "author"], predictions=answers
    )
    assert result.rows == 240
    assert list(result.models) == ["good", "weak"]
    for name, evaluation in result.models.items():
        assert evaluation.scores == regard.evaluate(trained[name], two_classes).scores
    (pair,) = result.pairs
    difference = result.models["good"].scores["accuracy"].value - result.models["weak"].scores["accuracy"].value
    assert pair.difference == pytest.approx(difference)
    assert pair.better == "good"
    assert pair.verdict.startswith("good beats weak by ")
    assert {part.by for part in result.slices} == {"length", "label", "author"}
    by_author = [part for part in result.slices if part.by == "author"]
    assert [(part.value, part.rows) for part in by_author] == [("writer 0", 80), ("writer 1", 80), ("writer 2", 80)]
    lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 240
    assert {"text", "gold", "good.label", "weak.label"} <= lines[0].keys()
    right = sum(line["gold"] == line["good.label"] for line in lines) / 240
    assert right == pytest.approx(result.models["good"].scores["accuracy"].value)
    assert json.loads(json.dumps(result.json()))["pairs"][0]["a"] == "good"
    assert {(line["author"], line["slice.author"]) for line in lines} == {(f"writer {n}", f"writer {n}") for n in "012"}
    for part in result.slices:  # the rows of each slice can be chosen in the file
        chosen = [line for line in lines if line[f"slice.{part.by}"] == part.value]
        right = sum(line["gold"] == line["good.label"] for line in chosen) / len(chosen)
        assert (len(chosen), right) == (part.rows, pytest.approx(part.scores["good"].value))
    assert all(line["length"] == len(line["text"].split()) for line in lines)


def test_predictions_of_one_model_keep_their_names(trained: dict[str, Path], two_classes: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    evaluate_models([trained["good"]], two_classes, slices=["label", "author", "text"], predictions=answers)
    header, first, *_ = answers.read_text(encoding="utf-8").splitlines()
    assert header.startswith("text,gold,author,slice.label,slice.author,slice.text,label,score")
    assert first.startswith("cold red number 0 of many,cold,writer 0,cold,writer 0,")


def test_slices_of_rows_that_are_answered(trained: dict[str, Path], two_classes: Path, tmp_path: Path) -> None:
    models, answers = [trained["good"], trained["weak"]], tmp_path / "answers.jsonl"
    plain = evaluate_models(models, two_classes, slices=["author"])
    limit = 0.505
    result = evaluate_models(models, two_classes, slices=["author"], abstain=limit, predictions=answers)
    lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert result.pairs == plain.pairs
    for name in ("good", "weak"):
        abstention = result.models[name].abstention
        assert abstention == regard.evaluate(trained[name], two_classes, abstain=limit).abstention
        assert abstention is not None
        counts = 0
        for part, without in zip(result.slices, plain.slices, strict=True):
            assert part.answered is not None
            assert part.scores == without.scores
            own = [line for line in lines if line["author"] == part.value and not line[f"{name}.abstained"]]
            assert part.answered[name].rows == len(own)
            assert part.answered[name].coverage.value == pytest.approx(len(own) / part.rows)
            score = part.answered[name].score
            assert (score is None) == (not own)
            if score is not None:
                right = sum(line["gold"] == line[f"{name}.label"] for line in own) / len(own)
                assert score.value == pytest.approx(right)
                assert score.low <= score.value <= score.high
            counts += len(own)
        assert abstention.coverage.value == pytest.approx(counts / 240)
    assert result.json()["slices"][0]["answered"].keys() == {"good", "weak"}
    assert "answered" not in plain.json()["slices"][0]


def test_a_slice_without_an_answered_row(trained: dict[str, Path], two_classes: Path) -> None:
    result = evaluate_models([trained["weak"]], two_classes, slices=["label"], abstain=1.0)
    for part in result.slices:
        assert part.answered is not None
        assert (part.answered["weak"].rows, part.answered["weak"].score) == (0, None)


def test_a_model_and_itself_cannot_be_told_apart(trained: dict[str, Path], two_classes: Path) -> None:
    result = evaluate_models([trained["weak"], trained["weak"]], two_classes)
    assert result.pairs[0].p_holm == 1.0
    assert "cannot be told apart with 240 rows: their scores are equal" in result.verdict


def test_few_rows_give_no_verdict(trained: dict[str, Path], tmp_path: Path) -> None:
    result = evaluate_models(list(trained.values()), write_rows(tmp_path / "few.csv", 12))
    assert result.verdict == "no verdict on weak and good: 12 rows, expected at least 30"
    assert result.pairs[0].better is None


def test_rows_of_one_group_give_no_verdict(trained: dict[str, Path], tmp_path: Path) -> None:
    data = tmp_path / "one.csv"
    data.write_text("text,label,book\n" + "warm red,warm,same\ncold gray,cold,same\n" * 20, encoding="utf-8")
    columns = {"text": "text", "label": "label", "group": "book"}
    result = evaluate_models(list(trained.values()), data, columns=columns)
    assert "all 40 rows are of one group" in result.verdict


def test_groups_widen_the_interval(trained: dict[str, Path], tmp_path: Path) -> None:
    data = tmp_path / "groups.csv"
    lines = [
        f"warm number {number // 6},{'warm' if number // 6 % 3 else 'cold'},{number // 6}" for number in range(240)
    ]
    data.write_text("text,label,book\n" + "\n".join(lines) + "\n", encoding="utf-8")
    columns = {"text": "text", "label": "label", "group": "book"}
    rows = evaluate_models([trained["good"]], data)
    groups = evaluate_models([trained["good"]], data, columns=columns)
    widths = [one.models["good"].scores["accuracy"] for one in (rows, groups)]
    assert widths[1].high - widths[1].low > 1.5 * (widths[0].high - widths[0].low)
    assert groups.notes == ("40 groups of rows are resampled as a whole",)


def test_rows_of_one_class_give_no_verdict(trained: dict[str, Path], tmp_path: Path) -> None:
    data = tmp_path / "one.csv"
    data.write_text("text,label\n" + "".join(f"warm {number},warm\n" for number in range(40)), encoding="utf-8")
    assert "all rows have the label 'warm'" in evaluate_models(list(trained.values()), data).verdict


def test_labels_are_mapped_by_name(trained: dict[str, Path], two_classes: Path, tmp_path: Path) -> None:
    """A model with the labels COLD and WARM, in another order, answers with the names of the first one."""
    data = tmp_path / "upper.csv"
    text = two_classes.read_text(encoding="utf-8")
    data.write_text(text.replace(",warm,", ",WARM,").replace(",cold,", ",Cold,"), encoding="utf-8")
    regard.train(data, preset="ngram", out=tmp_path / "upper")
    result = evaluate_models([trained["good"], tmp_path / "upper"], two_classes)
    assert result.models["upper"].scores["accuracy"].value > 0.9


def test_names_are_short_and_different() -> None:
    assert model_names(["runs/a", "runs/b"]) == ["a", "b"]
    assert model_names(["runs/a", "old/a"]) == ["runs/a", "old/a"]
    assert model_names(["runs/a", "runs/a"]) == ["runs/a (1)", "runs/a (2)"]
