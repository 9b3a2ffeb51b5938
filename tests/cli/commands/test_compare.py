"""`regard compare`, and `regard evaluate` with several models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard import cli, samples


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare") / "out"
    data = str(samples.path("messages"))
    words = ["compare", data, "--models", "tiny-bert", "tiny-roberta", "--steps", "2", "--out", str(folder)]
    assert cli.main(words) == 0
    return folder


def test_the_table(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(samples.path("messages"))
    words = ["compare", data, "--models", "tiny-bert", "tiny-roberta", "--steps", "2", "--out", str(out)]
    assert cli.main(words) == 0
    shown = capsys.readouterr()
    assert "tiny-bert (from scratch)" in shown.out
    assert "cannot be told apart" in shown.out
    assert f"results: {out}" in shown.out
    assert "from an earlier run" in shown.err
    assert cli.main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rows"] == 91
    assert {model["name"] for model in result["models"]} == {"tiny-bert", "tiny-roberta"}


def test_several_models_are_evaluated(out: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    models = [str(out / "models" / name / f"{name}-seed-0") for name in ("tiny-bert", "tiny-roberta")]
    data = str(samples.path("messages"))
    answers = tmp_path / "answers.csv"
    assert cli.main(["evaluate", *models, data, "--slices", "length,label", "--predictions", str(answers)]) == 0
    shown = capsys.readouterr().out
    assert "accuracy by slice" in shown
    assert "McNemar" in shown
    assert len(answers.read_text(encoding="utf-8").splitlines()) >= 457
    assert cli.main(["evaluate", *models, data, "--slices", "label", "--abstain", "0.17"]) == 0
    shown = capsys.readouterr().out
    assert "answered with a confidence of at least 0.17" in shown
    assert "tiny-bert-seed-0: coverage" in shown
    answered = shown.split("answered with")[1]
    assert "all   " in answered
    assert answered.count("label: ") == 6
    assert cli.main(["evaluate", *models, data, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["pairs"]) == 1
