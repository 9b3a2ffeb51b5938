"""The whole search: what is chosen and written, how it goes on, and what is refused."""

from __future__ import annotations

import errno
import json
import os
import signal
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.compression.conftest import write_rows
from tests.predict.models import random_checkpoint, word_tokenizer

import regard
from regard.checkpoint import write_folder as write_folder_module
from regard.compression import compress as compress_module
from regard.compression import measure as measure_module
from regard.compression import search as search_module
from regard.compression.candidates import CandidateSpec, plan_candidates
from regard.compression.compress import BelowFloor, compress, speed_notes
from regard.compression.measure import Measured
from regard.compression.result import CandidateResult, Compression
from regard.compression.state import WorkFolder
from regard.compression.teacher import Teacher
from regard.errors import FolderError, InputError
from regard.metrics.confidence import Score
from regard.predict.load import load
from regard.predict.model import Model
from regard.training.engine.loop import Stopped
from regard.training.output.metrics_log import TrainingEvent


@pytest.fixture(autouse=True)
def int8_everywhere(fast_int8: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # ONNX Runtime: no export, which takes seconds


def only_candidates(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Try these candidates only, which takes less time."""

    def planned(*arguments: Any, **options: Any) -> list[CandidateSpec]:
        return [one for one in plan_candidates(*arguments, **options) if one.name in names]

    monkeypatch.setattr(compress_module, "plan_candidates", planned)


def test_the_fastest_model_that_keeps_the_score(
    teacher_folder: Path, rows_file: Path, test_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    seen: list[str] = []
    result = compress(
        teacher_folder,
        rows_file,
        test=test_file,
        out=out,
        floor=0.9,
        methods=["int8", "ngram"],
        target_ms=1e-6,
        device="cpu",
        progress=lambda progress: seen.append(progress.values.get("name", progress.stage)),
    )
    assert seen[0] == "teacher"
    assert result.chosen in ("int8", "ngram")
    assert {one.name for one in result.candidates} == {"int8", "ngram"}
    chosen = result.chosen_candidate
    assert chosen is not None
    assert chosen.holds
    assert chosen.difference is not None
    assert result.rows == 80
    assert any("no candidate that holds the floor takes at most 1e-06 ms" in note for note in result.notes)
    stored = json.loads((out / "compression.json").read_text())
    assert stored["chosen"] == result.chosen
    assert stored["seconds"] == result.seconds > 0
    card = (out / "README.md").read_text()
    assert "## Compression" in card
    assert f"| **{result.chosen}** |" in card
    assert (out / "pareto.png").read_bytes().startswith(b"\x89PNG")
    assert not out.with_name("small.compress").exists()
    score = regard.evaluate(regard.load(out, device="cpu"), test_file).scores[result.metric].value
    assert score == pytest.approx(chosen.scores[result.metric].value)
    with pytest.raises(InputError, match="exists and is not empty"):
        compress(teacher_folder, rows_file, test=test_file, out=out, methods=["int8"])


def test_a_floor_that_nothing_holds(teacher_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    hard = write_rows(tmp_path / "hard.csv", 60, seed=5)
    real = measure_module.measure

    def worse(model: Model, *arguments: Any, **options: Any) -> Measured:
        measured = real(model, *arguments, **options)
        if "ngram" in str(model.folder):
            for table in (measured.dev, measured.test):
                table.features[::3, table.score("accuracy").columns[0]] = 0
        return measured

    options: dict[str, Any] = {"test": hard, "floor": 0.99, "methods": ["ngram"], "device": "cpu"}
    with mock.patch.object(search_module, "measure", worse):
        with pytest.raises(BelowFloor, match=r"no candidate keeps 99\.0%.*nothing was written") as caught:
            compress(teacher_folder, rows_file, out=tmp_path / "small", **options)
        assert not (tmp_path / "small").exists()
        assert "ngram: accuracy" in str(caught.value)
        assert "--allow-below-floor" in caught.value.with_flags
        assert caught.value.compression.chosen is None
        result = compress(teacher_folder, rows_file, out=tmp_path / "small", allow_below_floor=True, **options)
    assert result.chosen == "ngram"
    assert result.notes[-1] == "no candidate holds the floor of 0.99; ngram comes nearest"


def test_a_search_that_was_killed_and_had_no_space_goes_on(
    teacher_folder: Path, rows_file: Path, test_file: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"test": test_file, "device": "cpu", "keep_all": True, "methods": ["int8", "ngram"]}
    out = tmp_path / "small"
    failing = mock.patch.object(write_folder_module, "write_weights", side_effect=KeyboardInterrupt)
    with failing, pytest.raises(KeyboardInterrupt):
        compress(teacher_folder, rows_file, out=out, floor=0.5, **options)
    failing = mock.patch.object(
        write_folder_module, "write_weights", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    )
    message = r"No space left on device.*The candidates before ngram are kept: free some space"
    with failing, pytest.raises(FolderError, match=message):
        compress(teacher_folder, rows_file, out=out, floor=0.5, **options)
    assert not out.exists()
    measured = mock.Mock(wraps=measure_module.measure)
    with mock.patch.object(search_module, "measure", measured):
        result = compress(teacher_folder, rows_file, out=out, floor=0.5, **options)
    assert measured.call_count == 1  # neither the teacher nor int8 again
    assert [(one.name, one.error) for one in result.candidates] == [("int8", None), ("ngram", None)]
    with pytest.raises(FolderError, match="differs in: floor"):
        compress(teacher_folder, rows_file, out=out, floor=0.4, **options)


def scores_of(result: Compression) -> dict[str, Any]:
    """Everything in the table that does not depend on the machine's speed."""
    return {one.name: (one.scores, one.difference, one.bytes) for one in (result.teacher, *result.candidates)}


def test_killed_twice_the_table_is_the_same(
    teacher_folder: Path, rows_file: Path, test_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"test": test_file, "floor": 0.5, "device": "cpu", "keep_all": True, "steps": 4}
    options["methods"] = ["int8", "layers"]
    only_candidates(monkeypatch, "int8", "layers 1", "layers 1 int8")
    whole = compress(teacher_folder, rows_file, out=tmp_path / "whole", **options)
    answered: list[int] = []
    positions = Teacher._positions
    monkeypatch.setattr(Teacher, "_positions", lambda *args: [answered.append(1), positions(*args)][1])

    def stop(event: TrainingEvent) -> None:  # in the middle of the first student
        if event.kind == "log" and event.step >= 2:
            signal.raise_signal(signal.SIGTERM)

    out = tmp_path / "killed"
    with pytest.raises(Stopped):
        compress(teacher_folder, rows_file, out=out, training=stop, log_every=1, **options)
    with mock.patch.object(WorkFolder, "write", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        compress(teacher_folder, rows_file, out=out, log_every=1, **options)  # before the first result is stored
    result = compress(teacher_folder, rows_file, out=out, log_every=1, **options)
    assert scores_of(result) == scores_of(whole)
    assert len(result.candidates) == 3
    assert len(answered) == 1  # its answers are kept on disk
    assert not any(one.error for one in result.candidates)


def test_models_are_not_kept_in_memory(
    teacher_folder: Path, rows_file: Path, test_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Model:
        alive.append(sum(reference() is not None for reference in networks))
        model = load(*arguments, **options)
        networks.append(weakref.ref(model.network))
        return model

    monkeypatch.setattr(search_module, "load", counted)
    only_candidates(monkeypatch, "int8", "layers 1", "layers 1 int8")
    options: dict[str, Any] = {"test": test_file, "floor": 0.5, "device": "cpu", "steps": 2}
    result = compress(teacher_folder, rows_file, out=tmp_path / "small", **options)
    assert len(alive) == len(result.candidates) + 1
    assert set(alive) == {0}  # when a candidate is measured, those before it are gone


def test_what_is_refused(teacher_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    with pytest.raises(InputError, match=r"floor is 1\.2"):
        compress(teacher_folder, rows_file, out=out, floor=1.2)
    few = write_rows(tmp_path / "few.csv", 9, seed=2)
    with pytest.raises(InputError, match="there are 9 test rows, too few to prove"):
        compress(teacher_folder, rows_file, test=few, out=out)
    other = tmp_path / "other.csv"
    other.write_text(rows_file.read_text().replace("good", "yes"))
    with pytest.raises(InputError, match=r"the teacher and the data have different labels.*good"):
        compress(teacher_folder, other, out=out)
    language = Model(random_checkpoint("tiny-bert", {"masked": 0}), word_tokenizer(special=True))
    with pytest.raises(InputError, match=r"no answers to give|such models are not compressed"):
        compress(language.save(tmp_path / "language"), rows_file, out=out)
    assert not out.exists()


def test_the_time_is_a_limit(teacher_folder: Path, rows_file: Path, test_file: Path, tmp_path: Path) -> None:
    with pytest.raises(BelowFloor) as error:
        compress(teacher_folder, rows_file, test=test_file, out=tmp_path / "a", time=0.001, methods=["int8"])
    assert error.value.compression.notes[-1] == "the time was up before these candidates: int8"
    result = compress(
        teacher_folder,
        rows_file,
        test=test_file,
        out=tmp_path / "b",
        target_ms=1e6,
        floor=0.8,
        methods=["int8", "ngram"],
    )
    assert [one.name for one in result.candidates] == ["int8"]
    assert "int8 takes at most 1e+06 ms, so these candidates were not made: ngram" in result.notes


def test_a_faster_candidate_that_was_not_tested_is_named() -> None:
    def candidate(name: str, milliseconds: float, difference: float, margin: float, **more: Any) -> CandidateResult:
        scores = [Score(value, value - 0.02, value + 0.02) for value in (difference, margin)]
        latency = {"24": milliseconds}
        return CandidateResult(name, name, difference=scores[0], dev_margin=scores[1], latency_ms=latency, **more)

    teacher = CandidateResult("teacher", "teacher", latency_ms={"24": 17.2})
    chosen = candidate("fp16", 17.9, 0.0, 0.01, holds=True)
    others = [
        chosen,
        candidate("int8", 8.4, 0.0, -0.0186),
        candidate("slow", 30.0, 0.0, 0.0),
        candidate("worse", 3.0, -0.1, -0.1),
        candidate("tested", 3.0, 0.0, 0.01, holds=False),
    ]
    why, speed = speed_notes(chosen, teacher, others, dev_rows=36)
    assert why.startswith("int8 is faster (8.4 ms) and scores as well on the test rows, but was not tested: ")
    assert "on 36 validation rows it is 0.0186 below the floor" in why
    assert speed == "fp16 takes less memory than the teacher, but is no faster on this machine"
    assert speed_notes(replace(chosen, latency_ms={"24": 7.0}), teacher, others, dev_rows=36) == []
