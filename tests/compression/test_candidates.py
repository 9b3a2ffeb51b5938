"""Which candidates a teacher has, and how they are made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.predict.models import random_checkpoint

from regard.checkpoint.families import preset
from regard.checkpoint.network_tensors import build_on_meta
from regard.compression.candidates import (
    METHODS,
    SMALL,
    CandidateSpec,
    Workshop,
    check_candidates,
    check_methods,
    max_vocabulary,
    plan_candidates,
    record_engine,
    unused_notes,
    without_layers,
)
from regard.compression.students.shapes import Shape
from regard.compression.teacher import Teacher
from regard.config import ModelConfig
from regard.errors import InputError
from regard.predict import info as model_info
from regard.predict.load import load
from regard.predict.model import Model
from regard.training.load_data import LabeledData


def test_cheap_candidates_come_first(teacher: Teacher) -> None:
    names = [candidate.name for candidate in plan_candidates(teacher.model, "classify", methods=METHODS)]
    assert names[0] == "int8"
    assert names.index("layers 1") < names.index("layers 1 int8") < names.index("small")
    assert names[-2:] == ["static", "ngram"]


def test_candidates_fit_the_network_and_the_task() -> None:
    decoder = Model(random_checkpoint("tiny-gpt2"))
    assert [one.name for one in plan_candidates(decoder, "causal", methods=METHODS)] == ["int8"]
    recurrent = Model(random_checkpoint("tiny-gru"))
    assert plan_candidates(recurrent, "translate", methods=METHODS) == []
    note = "no candidate can be made of this model for causal with layers and static"
    assert unused_notes(decoder, "causal", ["int8", "layers", "static"]) == [note]
    assert unused_notes(decoder, "causal", ["int8"]) == unused_notes(decoder, "causal", METHODS) == []
    with pytest.raises(InputError, match='the method "int4" is not known; expected some of: int8'):
        check_methods(["int4"])
    with pytest.raises(InputError, match=r"no candidate can be made of this model for translate .* ngram\. Try other"):
        check_candidates([], "translate", ["ngram"])


def test_layers_in_fp32_are_part_of_the_name() -> None:
    one = without_layers(CandidateSpec("int8", "int8 products", "int8"), ["a", "b"])
    assert (one.name, one.slug, one.exclude) == ("int8 but 2 layers", "int8-but-2-layers", ("a", "b"))


def workshop(teacher: Teacher, data: LabeledData) -> Workshop:
    return Workshop(teacher, data, {"steps": 3, "device": "cpu"})


def test_an_engine_is_recorded_in_the_folder(
    teacher: Teacher, teacher_folder: Path, labeled: LabeledData, tmp_path: Path
) -> None:
    shop = workshop(teacher, labeled)
    shop.make(CandidateSpec("int8", "", "int8", exclude=("x",)), tmp_path / "int8", teacher_folder, None)
    assert json.loads((tmp_path / "int8" / "run.json").read_text())["engine"] == {"name": "int8", "exclude": ["x"]}
    assert model_info(tmp_path / "int8").engine == "int8"
    assert model_info(teacher_folder).engine is None
    record_engine(tmp_path, {"name": "onnx"})
    assert json.loads((tmp_path / "run.json").read_text()) == {"engine": {"name": "onnx"}}


@pytest.mark.parametrize("width", [32, 16])
def test_students_are_trained_from_the_teacher(
    teacher: Teacher, teacher_folder: Path, labeled: LabeledData, tmp_path: Path, width: int
) -> None:
    shop = workshop(teacher, labeled)
    calls: list[int] = []
    shop.more_rows = lambda: calls.append(1)
    folder = tmp_path / "student" / "model"
    shop.make(CandidateSpec("small", "", "student", shape=Shape(1, width, 64)), folder, teacher_folder, None)
    assert calls == [1]
    assert shop.more_rows is None
    model = load(folder, device="cpu")
    assert (model.config.layers, model.config.width) == (1, width)
    assert model.labels == teacher.model.labels
    assert shop.seconds["small"] > 0


def test_the_teacher_answers_before_the_first_training(
    teacher: Teacher, teacher_folder: Path, labeled: LabeledData, tmp_path: Path
) -> None:
    teacher = replace(teacher, cache=tmp_path / "cache")
    shop = workshop(teacher, labeled)
    spec = CandidateSpec("small", "", "student", shape=Shape(1, 16, 64))
    shop.prepare(CandidateSpec("int8", "", "int8"))
    assert not teacher.cache.exists()
    shop.prepare(spec)
    (answers,) = teacher.cache.iterdir()
    answered = answers.stat().st_mtime_ns
    shop.make(spec, tmp_path / "student" / "model", teacher_folder, None)
    assert [path.stat().st_mtime_ns for path in teacher.cache.iterdir()] == [answered]


def test_ngrams_learn_from_the_teacher(
    teacher: Teacher, teacher_folder: Path, labeled: LabeledData, tmp_path: Path
) -> None:
    shop = workshop(teacher, labeled)
    folder = tmp_path / "ngram" / "model"
    shop.make(CandidateSpec("ngram", "", "baseline", preset="ngram"), folder, teacher_folder, None)
    answers = load(folder, device="cpu").predict(["great soup", "dull soup"])
    assert [answer.json()["label"] for answer in answers] == ["good", "bad"]


def test_only_students_of_the_same_width_learn_layers(teacher: Teacher, labeled: LabeledData) -> None:
    shop = Workshop(teacher, labeled, {})
    narrow, wide = shop._distillation({0: 1}, same_width=False), shop._distillation({0: 1}, same_width=True)
    assert (narrow.network is not None, narrow.fits_recorded_steps) == (False, True)
    assert wide.network is not None


def test_a_small_student_has_at_most_five_million_parameters() -> None:
    config = preset("bert-mini").config
    assert isinstance(config, ModelConfig)
    for shape in (Shape(4, 192, 768), Shape(3, 256, 768)):
        vocabulary = max_vocabulary(shape, config)
        student = replace(
            config, vocabulary=vocabulary, layers=shape.layers, width=shape.width, ffn_width=shape.ffn_width
        )
        network = build_on_meta(student, {"sequence": 10})
        count = sum(parameter.numel() for parameter in network.parameters())
        assert 4_950_000 < count <= SMALL
