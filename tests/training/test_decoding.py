"""Beams and length penalty of a trained translation model, in its folder."""

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
from regard.training.decoding import TunedDecoding
from regard.training.output.metrics_log import TrainingEvent
from regard.training.train import train

SETTINGS: dict[str, Any] = {
    "task": "translate",
    "preset": "tiny-transformer",
    "bpe_dropout": 0.1,
    "steps": 4,
    "batch_size": 16,
    "device": "cpu",
}


def rows(count: int) -> list[dict[str, str]]:
    return [{"source": row.source, "target": row.target} for row in reversals(count)]


def test_the_length_penalty_is_written(tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    train(rows(40), out=tmp_path / "run", **SETTINGS, beams=3, progress=events.append)
    content = json.loads((tmp_path / "run/generation_config.json").read_text())
    decoding = json.loads((tmp_path / "run/run.json").read_text())["decoding"]
    assert (content["num_beams"], content["length_penalty"]) == (3, decoding["length_penalty"])
    assert len(decoding["scores"]) == 11
    (note,) = [event.values["text"] for event in events if event.kind == "note"]
    assert note.startswith(f"length penalty {content['length_penalty']:g} was chosen for 3 beams")
    theirs = transformers.GenerationConfig.from_pretrained(tmp_path / "run")
    assert (theirs.num_beams, theirs.length_penalty) == (3, content["length_penalty"])
    model = regard.load(tmp_path / "run", device="cpu")
    assert model.writer.defaults["beams"] == 3
    assert model.translate(["a b"]) == model.translate(["a b"], beams=3, length_penalty=content["length_penalty"])


def test_a_fine_tuned_model_keeps_how_it_generates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And `evaluate` decodes as its folder says, as `translate` does."""
    train(rows(40), out=tmp_path / "first", **SETTINGS, beams=2, dev_fraction=0.0)
    path = tmp_path / "first/generation_config.json"
    content = {**json.loads(path.read_text()), "length_penalty": 0.5, "no_repeat_ngram_size": 3}
    path.write_text(json.dumps(content))
    tuned = {**SETTINGS, "preset": None, "bpe_dropout": 0.0, "steps": 1, "dev_fraction": 0.0}
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


def test_without_validation_rows_the_penalty_is_one(tmp_path: Path) -> None:
    train(rows(40), out=tmp_path / "run", **SETTINGS, beams=2, dev_fraction=0.0)
    content = json.loads((tmp_path / "run/generation_config.json").read_text())
    assert (content["num_beams"], content["length_penalty"]) == (2, 1.0)


def test_other_tasks_have_no_beams(tmp_path: Path) -> None:
    texts = [{"text": f"text {number}", "label": "ab"[number % 2]} for number in range(40)]
    with pytest.raises(InputError, match="beams was given, but the task is classify; only translate takes it"):
        train(texts, out=tmp_path / "run", preset="tiny-bert", beams=3)


def test_a_choice_in_words() -> None:
    words = str(TunedDecoding(5, 0.6, {0.6: 40.125, 1.0: 39.5}))
    assert (
        words == "length penalty 0.6 was chosen for 5 beams: it scores 40.12 on the validation rows, and 1 scores 39.50"
    )
    words = str(TunedDecoding(5, 1.0, {0.6: 39.5, 1.0: 40.125}))
    assert words == "length penalty 1 was chosen for 5 beams: it scores 40.12 on the validation rows"
