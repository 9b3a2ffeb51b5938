"""Beams of a trained translation model, in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers
from tests.tasks.test_translate import reversals

import regard
from regard.errors import InputError
from regard.predict import translation
from regard.training.train import train

SETTINGS: dict[str, Any] = {
    "task": "translate",
    "preset": "tiny-transformer",
    "steps": 4,
    "batch_size": 16,
    "device": "cpu",
}


def rows(count: int) -> list[dict[str, str]]:
    return [{"source": row.source, "target": row.target} for row in reversals(count)]


def test_the_number_of_beams_is_written(tmp_path: Path) -> None:
    train(rows(40), out=tmp_path / "run", **SETTINGS, beams=3)
    assert json.loads((tmp_path / "run/generation_config.json").read_text())["num_beams"] == 3
    assert transformers.GenerationConfig.from_pretrained(tmp_path / "run").num_beams == 3
    model = regard.load(tmp_path / "run", device="cpu")
    assert model.translate(["a b"]) == model.translate(["a b"], beams=3)


def test_a_fine_tuned_model_keeps_how_it_generates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And `evaluate` decodes as its folder says, as `translate` does."""
    train(rows(40), out=tmp_path / "first", **SETTINGS, beams=2, dev_fraction=0.0)
    path = tmp_path / "first/generation_config.json"
    content = {**json.loads(path.read_text()), "length_penalty": 0.5, "no_repeat_ngram_size": 3}
    path.write_text(json.dumps(content))
    tuned = {**SETTINGS, "preset": None, "steps": 1, "dev_fraction": 0.0}
    train(rows(40), out=tmp_path / "run", start=tmp_path / "first", **tuned)
    assert json.loads((tmp_path / "run/generation_config.json").read_text()) == content
    runs: list[Any] = []
    plain = translation.beam_run

    def recording(*arguments: Any) -> Any:
        runs.append(arguments[-1])
        return plain(*arguments)

    monkeypatch.setattr(translation, "beam_run", recording)
    pairs = rows(6)
    by_default = regard.evaluate(tmp_path / "run", pairs, output=tmp_path / "default.jsonl")
    named = regard.evaluate(tmp_path / "run", pairs, output=tmp_path / "named.jsonl", beams=2, length_penalty=0.5)
    assert by_default.scores == named.scores
    assert (tmp_path / "default.jsonl").read_text() == (tmp_path / "named.jsonl").read_text()
    assert [run["beams"] for run in runs] == [2, 2]
    regard.evaluate(tmp_path / "run", pairs, beams=1)
    assert len(runs) == 2


def test_other_tasks_have_no_beams(tmp_path: Path) -> None:
    texts = [{"text": f"text {number}", "label": "ab"[number % 2]} for number in range(40)]
    with pytest.raises(InputError, match="beams was given, but the task is classify; only translate takes it"):
        train(texts, out=tmp_path / "run", preset="tiny-bert", beams=3)
