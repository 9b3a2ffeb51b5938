"""Training on similarity: its pairs, and a whole training that starts with it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.sentence_encoder import as_sentence_encoder, write_sentence_encoder
from tests.training.starting import CLASSIFY, start

import regard
from regard.checkpoint.reading import preprocessing_of
from regard.config import RecurrentConfig
from regard.data.records import PairRecord
from regard.errors import InputError
from regard.tasks.classify import LabelAnswer
from regard.tasks.pair import Pair
from regard.tasks.tag import Tag
from regard.training.defaults.recipes import SimilarityTraining
from regard.training.engine import loop
from regard.training.engine.loop import Stopped
from regard.training.head_init import similarity
from regard.training.head_init.new_head import choose_head_init
from regard.training.head_init.sentence_encoder import SentenceEncoder, Vectors
from regard.training.head_init.similarity import make_pairs, shared_similarity, train_similarity
from regard.training.initial_model import InitialModel
from regard.training.inputs.preview import explain_defaults
from regard.training.job import TrainingJob
from regard.training.output.metrics_log import TrainingEvent
from regard.training.plan import plan_job
from regard.training.settings import Settings

ROWS = [
    {
        "first": f"the day was {'good' if number % 3 else 'long'}",
        "second": f"a {'good' if number % 2 else 'bad'} day {number}",
        "label": "yes" if number % 2 else "no",
    }
    for number in range(40)
]
PAIR = Pair(names=("no", "yes"))


def unit_vectors(count: int, width: int = 8) -> Vectors:
    vectors = np.random.default_rng(0).normal(size=(count, width)).astype(np.float32)
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def test_every_row_gives_its_own_pair_and_as_many_others_as_any_other_row() -> None:
    first, second = np.arange(30), np.arange(30, 60)
    pairs = make_pairs(unit_vectors(60), first, second, 150, np.random.default_rng(0))
    assert pairs.shape == (150, 2)
    assert set(zip(first.tolist(), second.tolist(), strict=True)) <= set(map(tuple, pairs.tolist()))
    assert np.bincount(pairs[:, 0]).tolist() == [5] * 30
    assert set(pairs[:, 1].tolist()) <= set(second.tolist())


def test_most_added_pairs_are_near() -> None:
    vectors, first, second = unit_vectors(400), np.arange(200), np.arange(200, 400)
    pairs = make_pairs(vectors, first, second, 2200, np.random.default_rng(0))
    like = vectors[first] @ vectors[second].T
    ranks = (-like).argsort(1).argsort(1)
    near = ranks[pairs[:, 0], pairs[:, 1] - 200] < similarity.MAX_NEAR
    assert 0.6 < near.mean() < 0.75


@pytest.mark.parametrize(("rows", "count"), [(1, 5), (3, 2), (20, 20)])
def test_few_rows_and_few_pairs(rows: int, count: int) -> None:
    pairs = make_pairs(
        unit_vectors(2 * rows), np.arange(rows), np.arange(rows, 2 * rows), count, np.random.default_rng(0)
    )
    assert pairs.shape == (count, 2)


def test_pairs_are_examples_of_records_with_the_cosine_of_their_vectors(
    encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are those of the records, whose texts are in several pairs; long pairs have several windows."""
    model, job, records = untrained_job(as_sentence_encoder(encoder_folder, "mean_tokens"), tmp_path / "out")
    records.append(PairRecord("a good day " * 30, "a bad day " * 30, label="no"))
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=40, overlap=0.25)
    sentences = SentenceEncoder(job.network, preprocessing, pooling="mean", averaged=True)
    monkeypatch.setattr(similarity, "BLOCK", 7)
    examples = similarity.similar_pairs(sentences, records, 200, seed=3)

    texts = list(dict.fromkeys(text for record in records for text in (record.first, record.second)))
    vectors = dict(zip(texts, sentences.vectors(texts), strict=True))
    first, second = (np.array([texts.index(one) for one in part]) for part in zip(*map(both, records), strict=True))
    pairs = make_pairs(np.stack([*vectors.values()]), first, second, 200, np.random.default_rng(3))
    made = [
        PairRecord(texts[one], texts[other], label=float(vectors[texts[one]] @ vectors[texts[other]]))
        for one, other in pairs
    ]
    expected = Pair(kind="number").examples(made, preprocessing, labeled=True)
    assert len(expected) > 200
    for name in ("ids", "bounds", "owners"):
        np.testing.assert_array_equal(getattr(examples, name), getattr(expected, name))
    np.testing.assert_allclose(examples.by_sequence["label"], expected.by_sequence["label"], atol=1e-6)
    np.testing.assert_array_equal(examples.by_sequence["weight"], expected.by_sequence["weight"])
    assert examples.by_sequence["label"].dtype == expected.by_sequence["label"].dtype


def both(record: PairRecord) -> tuple[str, str]:
    return record.first, record.second


def untrained_job(folder: Path, out: Path) -> tuple[InitialModel, TrainingJob, list[PairRecord]]:
    """A job of pairs whose network is a sentence encoder."""
    model = start(PAIR, start=folder)
    records = [PairRecord(row["first"], row["second"], label=row["label"]) for row in ROWS]
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=None, overlap=0.0)
    examples = PAIR.examples(records, preprocessing, labeled=True)
    settings = Settings(epochs=1.0, lr=1e-4, batch_tokens=200, schedule="linear", warmup=0.1, adam_beta2=0.999)
    return model, plan_job(model.checkpoint.network, PAIR, examples, settings, out), records


def learn(
    model: InitialModel, job: TrainingJob, records: list[PairRecord], lr: float = 3e-3
) -> list[tuple[str, int, int]]:
    reports: list[tuple[str, int, int]] = []
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=None, overlap=0.0)
    train_similarity(
        job,
        records,
        SentenceEncoder(job.network, preprocessing, pooling="mean", averaged=True),
        SimilarityTraining(pairs=400, per_step=16, lr=lr),
        seed=0,
        report=lambda *words: reports.append(words),
    )
    return reports


def test_the_network_learns_similarity_and_keeps_its_head(
    encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, job, records = untrained_job(as_sentence_encoder(encoder_folder, "mean_tokens"), tmp_path)
    head = job.network.get_submodule("heads.sequence")
    before = {name: weight.clone() for name, weight in head.state_dict().items()}
    losses: list[float] = []
    fit = loop.fit

    def recorded(job: TrainingJob) -> Any:
        assert job.progress is not None
        progress = job.progress

        def listen(event: TrainingEvent) -> None:
            losses.extend([event.values["loss"]] if event.kind == "log" else [])
            progress(event)

        return fit(replace(job, progress=listen))

    monkeypatch.setattr(similarity, "fit", recorded)
    reports = learn(model, job, records)
    assert losses[-1] < 0.2 * losses[0]
    assert {what for what, _, _ in reports} == {"computing vectors", "learning similarity"}
    assert reports[-1][1] == reports[-1][2]
    assert all(torch.equal(before[name], weight) for name, weight in head.state_dict().items())
    assert not list(tmp_path.glob("metrics*"))


def test_trainings_of_one_block_learn_it_once(encoder_folder: Path, tmp_path: Path) -> None:
    folder = as_sentence_encoder(encoder_folder, "mean_tokens")
    found = []
    with shared_similarity():
        for changed in ({}, {}, {"lr": 1e-3}):
            model, job, records = untrained_job(folder, tmp_path)
            reports = learn(model, job, records, **changed)
            found.append((len(reports), {name: weight.clone() for name, weight in job.network.state_dict().items()}))
    (first, weights), (second, same), (third, _) = found
    assert first > 0
    assert second == 0
    assert third == first
    assert all(torch.equal(weight, same[name]) for name, weight in weights.items())
    model, job, records = untrained_job(folder, tmp_path)
    assert len(learn(model, job, records)) == first


def test_a_frozen_network_is_left_as_it_is(encoder_folder: Path, tmp_path: Path) -> None:
    model, job, records = untrained_job(as_sentence_encoder(encoder_folder, "mean_tokens"), tmp_path)
    job.network.requires_grad_(False)
    assert learn(model, job, records) == []


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "regard.training.head_init.initializer.similarity_training", lambda *_, **__: SimilarityTraining(64, 8, 1e-4)
    )


@pytest.mark.usefixtures("few_pairs")
def test_pairs_from_a_sentence_encoder_start_with_it(encoder_folder: Path, tmp_path: Path) -> None:
    folder = as_sentence_encoder(encoder_folder, "mean_tokens")
    events: list[TrainingEvent] = []
    result = regard.train(ROWS, out=tmp_path / "run", start=folder, progress=events.append, device="cpu")
    whats = [event.values["what"] for event in events if event.kind == "fit"]
    assert set(whats) == {"computing vectors", "learning similarity"}
    (lines,) = (event.values["lines"] for event in events if event.kind == "begin")
    assert any(line.startswith("similarity: first, the network learns how similar 64 pairs") for line in lines)
    assert json.loads((tmp_path / "run/run.json").read_text())["similarity"]["pairs"] == 64
    assert ", after learning similarity from 64 pairs;" in (tmp_path / "run/README.md").read_text()
    assert "64 pairs" in (tmp_path / "run/report.html").read_text()
    assert result.steps > 0
    answer = regard.load(tmp_path / "run", device="cpu").predict([("a good day", "a bad day")])[0]
    assert isinstance(answer, LabelAnswer)
    explained = {reason.name: reason for reason in explain_defaults(ROWS, start=folder)}
    assert explained["head_init"].value == "similarity"
    assert "sentence encoder" in explained["head_init"].reason
    random = regard.train(ROWS, out=tmp_path / "random", start=folder, head_init="random", device="cpu")
    assert random.steps > result.steps  # more epochs


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("freeze", [None, "none"])
def test_few_pairs_keep_the_first_layer_of_a_deep_encoder(tmp_path: Path, freeze: str | None) -> None:
    texts = [row[name] for row in ROWS for name in ("first", "second")]
    folder = write_sentence_encoder(tmp_path / "start", texts, layers=4)
    regard.train(ROWS, out=tmp_path / "run", start=folder, epochs=1, device="cpu", freeze=freeze)
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("start", "run"))
    names = {name.removeprefix("bert."): weight for name, weight in after.items()}
    changed = {
        name
        for name, weight in before.items()
        if "pooler" not in name and not torch.equal(weight, names[name.removeprefix("bert.")])
    }
    assert any("layer.1." in name for name in changed)
    assert any("embeddings" in name or "layer.0." in name for name in changed) == (freeze == "none")


@pytest.mark.usefixtures("few_pairs")
def test_a_run_that_is_stopped_meanwhile_begins_again(encoder_folder: Path, tmp_path: Path) -> None:
    folder = as_sentence_encoder(encoder_folder, "mean_tokens")

    def stop(event: TrainingEvent) -> None:
        if event.kind == "fit" and event.values["what"] == "learning similarity":
            os.kill(os.getpid(), signal.SIGTERM)

    settings: dict[str, Any] = {"start": folder, "log_every": 1, "epochs": 1, "device": "cpu"}
    with pytest.raises(Stopped, match="stopped while the network learned similarity, before the first training step"):
        regard.train(ROWS, out=tmp_path / "cut", progress=stop, **settings)
    regard.train(ROWS, out=tmp_path / "cut", resume=True, **settings)
    regard.train(ROWS, out=tmp_path / "whole", **settings)
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "cut/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (CLASSIFY, {}, "head_init='similarity' is for text pairs, but the task is classify"),
        (Tag(names=("O", "B-a")), {}, "only pair takes it"),
        (PAIR, {"start": None, "preset": "tiny-bert"}, "preset='tiny-bert' has random weights"),
    ],
)
def test_other_tasks_and_presets_do_not_start_with_it(
    encoder_folder: Path, task: Any, options: dict[str, Any], message: str
) -> None:
    assert start(PAIR, start=encoder_folder).head_init == "random"
    with pytest.raises(InputError, match=message):
        start(task, **{"start": encoder_folder, "head_init": "similarity", **options})


@pytest.mark.usefixtures("few_pairs")
def test_it_is_possible_for_other_encoders_on_request(encoder_folder: Path, tmp_path: Path) -> None:
    regard.train(ROWS, out=tmp_path / "run", start=encoder_folder, head_init="similarity", epochs=1, device="cpu")
    assert json.loads((tmp_path / "run/run.json").read_text())["settings"]["head_init"] == "similarity"


@pytest.mark.parametrize(("name", "given"), [("fsdp", {"fsdp": True}), ("freeze", {"freeze": ("encoder",)})])
def test_a_frozen_or_sharded_encoder_learns_no_similarity(
    encoder_folder: Path, name: str, given: dict[str, Any]
) -> None:
    folder = as_sentence_encoder(encoder_folder, "mean_tokens")
    explained = {reason.name: reason.value for reason in explain_defaults(ROWS, start=folder, **given)}
    assert (explained["head_init"], explained["epochs"]) == ("random", "8")
    with pytest.raises(InputError, match=f"{name} and head_init='similarity' were both given"):
        explain_defaults(ROWS, start=folder, head_init="similarity", **given)


def test_recurrent_networks_do_not_learn_similarity() -> None:
    checkpoint = SimpleNamespace(config=RecurrentConfig(vocabulary=30, width=8, embedding_width=8), pooling=None)
    with pytest.raises(InputError, match="head_init='similarity' needs a Transformer"):
        choose_head_init(PAIR, checkpoint, "similarity", 40)  # type: ignore[arg-type]
