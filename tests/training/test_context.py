"""Taggers with the context of documents, from a file to answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tests.training.helpers import train

import regard
from regard.data.readers import read
from regard.data.records import TagRecord
from regard.errors import InputError
from regard.predict.batch.files import predict_to_file
from regard.predict.batch.rows import file_rows
from regard.predict.model_task import read_training_run, task_for
from regard.tasks import joined_sentences
from regard.tasks.tag import Tag
from regard.training.inputs.preview import choose_settings, explain_defaults
from regard.training.load_data import load_data
from regard.training.output.metrics_log import TrainingEvent
from regard.training.result import TrainResult
from regard.training.settings import Settings

NAMES = ["Ada", "Bo", "Cleo", "Dan", "Eva", "Finn"]
CITIES = ["Oslo", "Rome", "Bath", "Kyiv"]


def conll(documents: int, *, marked: bool = True) -> str:
    """Documents of three sentences each."""
    lines = []
    for number in range(documents):
        name, city = NAMES[number % len(NAMES)], CITIES[number % len(CITIES)]
        sentences = [f"{name} B-PER\nLund I-PER\ncalled O", f"in O\n{city}{number} B-LOC", "it O\nrained O\nagain O"]
        lines += ["-DOCSTART- O"] if marked else []
        lines += sentences
    return "\n\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained tagger next to its data."""
    folder = tmp_path_factory.mktemp("context")
    (folder / "data.conll").write_text(conll(24))
    (folder / "test.conll").write_text(conll(5))
    train(folder / "data.conll", folder / "run", epochs=2, lr=5e-3)
    return folder


def with_context(folder: Path, target: Path, context: int) -> Path:
    """The same model with another setting in run.json."""
    regard.load(folder / "run", device="cpu").save(target)
    run = json.loads((target / "run.json").read_text())
    run["task_settings"]["context"] = context
    (target / "run.json").write_text(json.dumps(run))
    return target


def test_the_setting_is_stored_and_used_again(folder: Path, tmp_path: Path) -> None:
    run = json.loads((folder / "run/run.json").read_text())
    assert (run["task_settings"]["context"], run["task_settings"]["constrained"]) == (64, True)
    card = (folder / "run/README.md").read_text()
    assert "Context: up to 64 tokens of the sentences around each, from the same document." in card
    model = regard.load(folder / "run", device="cpu")
    task = task_for(model.checkpoint, model.folder)
    assert isinstance(task, Tag)
    assert task.context == 64
    alone = with_context(folder, tmp_path / "alone", 0)
    losses = [regard.evaluate(one, folder / "test.conll").loss for one in (folder / "run", alone)]
    assert abs(losses[0] - losses[1]) > 1e-6  # tokens around a sentence change what is computed
    unmarked = tmp_path / "unmarked.conll"
    unmarked.write_text(conll(5, marked=False))
    assert regard.evaluate(folder / "run", unmarked).loss == pytest.approx(losses[1], rel=1e-5)


def test_all_ways_to_predict_give_the_same_answers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = regard.load(folder / "run", device="cpu")
    records = [record for record in read(folder / "test.conll") if isinstance(record, TagRecord)]
    expected = [rounded(answer.json()) for answer in model.predict(records)]
    rows = [{"text": record.text, "document_id": record.document} for record in records]
    assert [rounded(answer.json()) for answer in model.predict(rows)] == expected
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(Tag, "chunk_size", 2)  # neighbors are in other chunks
    for path in (folder / "test.conll", table):
        predict_to_file(model, file_rows(str(path), "tag"), tmp_path / "out.jsonl", batch_tokens=64)
        lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [rounded({name: line[name] for name in expected[0]}) for line in lines] == expected
    (single,) = model.predict([records[0].text])
    assert single.json()["windows"] == 1


def rounded(answer: dict[str, Any]) -> dict[str, Any]:
    entities = [{**entity, "score": round(entity["score"], 4)} for entity in answer["entities"]]
    return {**answer, "entities": entities}


def test_transformers_opens_the_folder(folder: Path) -> None:
    model = regard.load(folder / "run", device="cpu")
    task = task_for(model.checkpoint, model.folder)
    records = list(read(folder / "test.conll"))
    examples = task.examples(records, model.preprocessing(), labeled=False)
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(folder / "run").eval()
    for row in range(3):
        ids = examples.take([row]).tokens.ids.tolist()
        (ours,) = model.outputs([ids])
        with torch.no_grad():
            logits = theirs(torch.tensor([ids])).logits[0]
        torch.testing.assert_close(ours.logits, logits, atol=1e-5, rtol=1e-4)


def test_it_is_off_without_documents(tmp_path: Path) -> None:
    path = tmp_path / "data.conll"
    path.write_text(conll(24, marked=False))
    train(path, tmp_path / "run", epochs=None, steps=1)
    assert json.loads((tmp_path / "run/run.json").read_text())["task_settings"]["context"] == 0
    with pytest.raises(InputError, match="context=8 was given, but the documents of the sentences are not known"):
        train(path, tmp_path / "other", epochs=None, steps=1, context=8)


def test_documents_are_known_by_their_column(tmp_path: Path) -> None:
    rows = [{"text": "Ada met Bo", "label": [[0, 3, "PER"]], "doc": 1}, {"text": "It rained", "label": [], "doc": 1}]
    columns = {"document": "doc"}
    train(rows, tmp_path / "run", epochs=None, steps=1, dev_fraction=0, columns=columns)
    assert json.loads((tmp_path / "run/run.json").read_text())["task_settings"]["context"] == 64
    assert [record.right_context for record in read(rows, columns=columns)] == [("It rained",), ()]  # type: ignore[attr-defined]
    (tmp_path / "new.csv").write_text("doc,text\n1,Ada met Bo\n1,It rained\n2,Bo sang\n")
    known = read_training_run(tmp_path / "run")
    assert known is not None
    predicted = [row.item for row in file_rows(str(tmp_path / "new.csv"), "tag", read_options=known.data)]
    assert [record.right_context for record in predicted] == [("It rained",), (), ()]


def test_other_tasks_have_no_context(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("text,label\na good day,yes\na bad day,no\n")
    with pytest.raises(InputError, match="context was given, but the task is classify"):
        train(path, tmp_path / "run", dev_fraction=0, context=8)


def test_the_fingerprint_depends_on_the_documents(tmp_path: Path) -> None:
    path = tmp_path / "data.conll"
    prints = []
    for marked in (True, False):
        path.write_text(conll(4, marked=marked))
        prints.append(load_data(path, dev_fraction=0).fingerprint)
    assert prints[0] != prints[1]


def joined(folder: Path, out: Path, **changed: Any) -> TrainResult:
    """A tagger trained further, on sequences of several sentences."""
    return regard.train(folder / "data.conll", start=str(folder / "run"), out=out, device="cpu", **changed)


def test_a_pretrained_model_is_trained_on_joined_sentences(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_sentences, "JOINED_TOKENS", 30)
    explained = {reason.name: reason for reason in explain_defaults(folder / "data.conll", start=str(folder / "run"))}
    assert "those of a document share sequences" in explained["batch_tokens"].reason
    assert "sentences" in explained["epochs"].reason
    assert explained["layerwise_lr_decay"].value == "0.8"
    dev = tmp_path / "dev.conll"
    dev.write_text(conll(5).replace("called", "phoned").replace("in O", "near O").replace("again", "today"))
    result = joined(folder, tmp_path / "run", dev=dev, lr=5e-3, epochs=4)
    assert result.scores["f1"].value > 0.8
    again = regard.evaluate(tmp_path / "run", dev)
    assert again.scores["f1"].value == pytest.approx(result.scores["f1"].value)  # of sentences one by one


def test_joined_sentences_go_on_after_a_stop(folder: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"lr": 1e-3, "epochs": 3, "batch_tokens": 256, "dropout": 0.1, "save_every": 1}
    whole = joined(folder, tmp_path / "whole", **settings)

    def stop(event: TrainingEvent) -> None:
        if event.step >= whole.steps // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        joined(folder, tmp_path / "stopped", progress=stop, **settings)
    joined(folder, tmp_path / "stopped", resume=True, **settings)
    tensors = [load_file(tmp_path / name / "model.safetensors") for name in ("whole", "stopped")]
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def test_sentences_are_not_joined_where_they_are_counted(folder: Path) -> None:
    several: tuple[dict[str, Any], ...] = ({"batch_size": 4}, {"context": 0})
    for settings in several:
        explained = explain_defaults(folder / "data.conll", start=str(folder / "run"), **settings)
        assert not any("share sequences" in reason.reason for reason in explained)


def test_without_rates_by_layer_the_learning_rate_is_the_usual_one(folder: Path) -> None:
    def chosen(**settings: Any) -> Settings:
        return choose_settings(folder / "data.conll", start=str(folder / "run"), **settings)

    ours, usual = chosen(), chosen(layerwise_lr_decay=1.0)
    assert (ours.layerwise_lr_decay, usual.layerwise_lr_decay) == (0.8, 1.0)
    assert ours.lr is not None
    assert usual.lr is not None
    assert usual.lr < ours.lr
