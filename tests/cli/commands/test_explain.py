"""`regard explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.cli import main


def test_a_text_is_explained_in_lines_and_as_json(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(trained), "a lovely film", "--faithfulness", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('the class "')
    assert lines[1].startswith("method: decomposition; tokens add up to")
    assert [line.split()[0] for line in lines[-3:]] == ["comprehensiveness", "sufficiency", "normalized"]
    assert main(["explain", str(trained), "a lovely film", "--method", "attention", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [word["text"] for word in values["words"]] == ["a", "lovely", "film"]
    assert values["note"]


def test_a_file_gives_the_words_of_each_class_and_the_faithfulness(
    trained: Path, reviews_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(trained), str(reviews_csv), "--max-rows", "30", "--top", "3"]) == 0
    out = capsys.readouterr().out
    assert "good: " in out
    assert "accuracy without these words" in out
    arguments = ["explain", str(trained), str(reviews_csv), "--faithfulness", "--method", "occlusion"]
    assert main([*arguments, "--max-rows", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("method")
    assert main([*arguments, "--max-rows", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 4
