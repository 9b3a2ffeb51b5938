"""The task of a model: by its heads, and by what its folder says of its training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.predict.foreign import REVIEWS, Foreign, logits
from tests.predict.models import random_checkpoint

import regard
from regard.errors import FolderError, InputError
from regard.predict import Model
from regard.predict.model_task import describe_model
from regard.text.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("name", "heads", "task"),
    [
        ("tiny-bert", {}, None),
        ("tiny-bert", {"pooled": 0}, None),
        ("tiny-bert", {"sequence": 2}, "classify"),
        ("tiny-bert", {"token": 2}, "tag"),
        ("tiny-bert", {"span": 0}, "answer"),
        ("tiny-bert", {"masked": 0, "next": 0}, "masked"),
        ("tiny-gpt2", {"language": 0}, "causal"),
        ("tiny-t5", {"language": 0}, "translate"),
    ],
)
def test_the_task_is_recognized_by_the_heads(name: str, heads: dict[str, int], task: str | None) -> None:
    assert Model(random_checkpoint(name, heads)).task == task


def test_a_saved_copy_keeps_its_task(trained: Path, tmp_path: Path) -> None:
    model = regard.load(trained, device="cpu")
    copy = regard.load(model.save(tmp_path / "copy"), device="cpu")
    assert copy.task == "classify"
    assert copy.predict(REVIEWS) == model.predict(REVIEWS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task_settings": None}, "has no task_settings"),
        ({"task_settings": {"kind": "multiple"}}, "task_settings cannot be used"),
        (
            {"task_settings": {"labels": ["a", "b", "c"]}},
            "run.json and config.json contradict each other",
        ),
        ({"task": "masked", "task_settings": {}}, "task_settings cannot be used"),
    ],
)
def test_a_run_that_does_not_fit(trained: Path, tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    folder = regard.load(trained).save(tmp_path / "copy")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | changed))
    with pytest.raises(FolderError, match=message):
        regard.load(folder).predict(REVIEWS)


def test_labels_and_scores_are_those_of_transformers(foreign: Foreign, words: Tokenizer) -> None:
    folder, model = foreign(id2label={0: "cold", 1: "mild", 2: "warm"}, label2id={"cold": 0, "mild": 1, "warm": 2})
    for text, answer in zip(REVIEWS, regard.load(folder, device="cpu").predict(REVIEWS), strict=True):
        expected = logits(model, words, text).logits[0].softmax(0)
        content = answer.json()
        assert content["label"] == ["cold", "mild", "warm"][int(expected.argmax())]
        results = [content["scores"][name] for name in ("cold", "mild", "warm")]
        assert results == pytest.approx(expected.tolist(), abs=1e-5)


def test_several_labels_and_numbers_by_problem_type(foreign: Foreign, words: Tokenizer) -> None:
    folder, model = foreign(num_labels=2, problem_type="multi_label_classification")
    content = regard.load(folder, device="cpu").predict(REVIEWS[:1])[0].json()
    expected = logits(model, words, REVIEWS[0]).logits[0].sigmoid().tolist()
    assert content["scores"] == pytest.approx({"LABEL_0": expected[0], "LABEL_1": expected[1]}, abs=1e-5)
    folder, model = foreign(num_labels=1)
    value = regard.load(folder, device="cpu").predict(REVIEWS[:1])[0].json()["value"]
    assert value == pytest.approx(float(logits(model, words, REVIEWS[0]).logits[0, 0]), abs=1e-5)


def test_pairs_by_what_is_given(foreign: Foreign, words: Tokenizer) -> None:
    folder, model = foreign(num_labels=2)
    content = regard.load(folder, device="cpu").predict([("warm and lovely", "a dull film")])[0].json()
    expected = logits(model, words, "warm and lovely", "a dull film").logits[0].softmax(0).tolist()
    assert content["scores"] == pytest.approx({"LABEL_0": expected[0], "LABEL_1": expected[1]}, abs=1e-5)


def test_tags_and_stretches_by_their_heads(foreign: Foreign) -> None:
    folder, _ = foreign("BertForTokenClassification", id2label={0: "O", 1: "B-PER", 2: "I-PER"})
    for inputs in ("Anna went home", ["Anna", "went", "home"], {"text": "Anna went home"}):
        (answer,) = regard.load(folder, device="cpu").predict([inputs])
        for entity in answer.json()["entities"]:
            assert "Anna went home"[entity["start"] : entity["end"]] == entity["text"]
    folder, _ = foreign("BertForQuestionAnswering")
    model = regard.load(folder, device="cpu")
    context = "Anna went home. It was late."
    (message,) = model.predict([("Who went home?", context)])
    (same,) = model.predict([{"question": "Who went home?", "context": context}])
    assert message.json() == same.json()
    assert context[message.json()["start"] : message.json()["end"]] == message.json()["answer"]
    with pytest.raises(InputError, match=r"this model needs \(question, context\)"):
        model.predict(["Who went home?"])


def test_two_classes_of_one_name(foreign: Foreign) -> None:
    folder, _ = foreign(num_labels=3, id2label={0: "good", 1: "other", 2: "other"})
    model = regard.load(folder, device="cpu")
    with pytest.raises(FolderError, match='two classes of id2label are called "other"'):
        model.predict(REVIEWS)
    assert len(model.embed(REVIEWS)) == len(REVIEWS)


def test_a_problem_that_is_not_known(foreign: Foreign) -> None:
    folder, _ = foreign(num_labels=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "problem_type": "guessing"}))
    with pytest.raises(FolderError, match='problem_type is "guessing", expected one of single_label'):
        regard.load(folder, device="cpu").predict(REVIEWS)


def edited(trained: Path, folder: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    shutil.copytree(trained, folder)
    run = json.loads((folder / "run.json").read_text())
    edit(run["task_settings"])
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def test_one_label_twice_is_refused(trained: Path, tmp_path: Path) -> None:
    folder = edited(trained, tmp_path / "model", lambda task: task.update(labels=["good", "good"]))
    with pytest.raises(FolderError, match=r'run.json: two classes are called "good"'):
        regard.load(folder).predict(["a film"])


def test_labels_that_contradict_config_json_are_refused(trained: Path, tmp_path: Path) -> None:
    folder = edited(trained, tmp_path / "model", lambda task: task.update(labels=task["labels"][::-1]))
    with pytest.raises(FolderError, match=r"run.json and config.json contradict each other: class 0 is"):
        regard.load(folder).predict(["a film"])
    (folder / "run.json").unlink()
    assert len(regard.load(folder).predict(["a film"])) == 1


@pytest.mark.parametrize("labels", [[1, 2], [None, "good"], [["a"], "good"]])
def test_labels_that_are_no_texts_are_refused(trained: Path, tmp_path: Path, labels: list[Any]) -> None:
    folder = edited(trained, tmp_path / "model", lambda task: task.update(labels=labels))
    with pytest.raises(FolderError, match=r"run.json"):
        regard.load(folder).predict(["a film"])


def test_models_are_described_in_plain_words() -> None:
    assert describe_model("causal") == "a model that generates text"
    assert describe_model("tag") == "a model for tag"
    assert describe_model(None) == "a network without a task"
