"""Which baseline can do what, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.training.starting import CLASSIFY

import regard
from regard import samples
from regard.baselines import BASELINES, baseline, check_task, is_baseline
from regard.baselines.fit import fit_baseline
from regard.baselines.ngram import build_ngram
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import ClassifyRecord
from regard.errors import InputError
from regard.tasks.classify import Classify
from regard.training.from_scratch.baseline_model import baseline_model
from regard.training.load_data import load_data


def test_names() -> None:
    assert list(BASELINES) == ["ngram", "static", "probe"]
    assert is_baseline("ngram")
    assert not is_baseline("bert-mini")
    assert not is_baseline(None)
    assert baseline("static").from_model(None) == "static from minilm"
    assert baseline("ngram").from_model(None) == "ngram"
    with pytest.raises(InputError, match='"ngrams" is not known'):
        baseline("ngrams")


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("static", "tag", "For tag, use preset ngram"),
        ("probe", "embed", "For embed, use preset static"),
        ("ngram", "answer", "Use a preset such as bert-mini"),
    ],
)
def test_a_task_that_a_baseline_cannot_do(name: str, task: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_task(name, task)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "ngram", "start": "minilm"}, "learns from the training data alone"),
        ({"preset": "ngram", "tokenizer": "folder"}, "has its own"),
        ({"preset": "ngram", "epochs": 3}, "fitted at once, without training steps"),
        ({"preset": "probe", "lr": 1e-3}, "fitted at once, without training steps"),
        ({"preset": "ngram", "dropout": 0.2}, "the baseline ngram has no network with dropout"),
        ({"preset": "ngram", "explainable": True}, "its weights show what counts"),
        ({"preset": "ngrams"}, 'Did you mean "ngram"'),
    ],
)
def test_settings_without_an_effect_are_refused(
    options: dict[str, Any], message: str, reviews_csv: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        regard.train(reviews_csv, out=tmp_path / "run", **options)
    assert not (tmp_path / "run/run.json").exists()


def test_a_tagger_reads_each_sentence_alone(tmp_path: Path) -> None:
    rows = [{"tokens": ["Ann", "left", f"{number}"], "tags": ["B-PER", "O", "O"]} for number in range(20)]
    with pytest.raises(InputError, match="context was given, but the baseline ngram reads each sentence alone"):
        regard.train(rows, preset="ngram", context=64, out=tmp_path / "run")


def test_data_that_was_read_before_and_all_rows(tmp_path: Path) -> None:
    """The network written after a refit has the vocabulary of all rows, and its tokenizer too."""
    data = load_data(samples.path("messages"))
    events: list[str] = []
    result = regard.train(
        data, preset="ngram", out=tmp_path / "run", refit="yes", progress=lambda event: events.append(event.kind)
    )
    assert result.rows == len(data.train) + len(data.dev)
    assert {"fit", "begin", "score"} <= set(events)
    model = regard.load(tmp_path / "run")
    assert model.require_tokenizer().size == model.config.vocabulary
    assert regard.evaluate(model, samples.path("messages")).scores["accuracy"].value > 0.95
    again = regard.train(data, preset="ngram", out=tmp_path / "run", refit="yes", resume=True)
    assert again.scores == result.scores


@pytest.mark.minilm
def test_a_probe_is_as_good_as_logistic_regression_on_the_vectors(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    data: Any = load_data(samples.path("messages"), dev_fraction=0.5)
    result = regard.train(data, preset="probe", out=tmp_path / "run")
    encoder = regard.load("minilm")
    vectors = [encoder.embed([record.text for record in part]) for part in (data.train, data.dev)]
    oracle = LogisticRegression(C=10, max_iter=1000).fit(vectors[0], [record.label for record in data.train])
    expected = oracle.score(vectors[1], [record.label for record in data.dev])
    assert result.scores["accuracy"].value > expected - 0.02
    assert regard.load(tmp_path / "run").family == "bert"


def test_a_classifier_is_fitted_to_its_examples() -> None:
    records = [ClassifyRecord(f"{word} soup", label) for word, label in (("warm", "good"), ("cold", "bad")) * 5]
    task = Classify.from_records(records)
    checkpoint, tokenizer = build_ngram(task, records, lambda *_: None)
    examples = task.examples(records, Preprocessing(tokenizer, checkpoint.config), labeled=True)
    fit_baseline(checkpoint.network, task, examples, seed=0, report=lambda *_: None)
    predicted = checkpoint.network(examples.take(range(10)).tokens).logits.argmax(1)
    assert predicted.tolist() == examples.by_sequence["label"].tolist()


def test_a_baseline_has_the_labels_of_the_task() -> None:
    records = [ClassifyRecord("a good day", "good"), ClassifyRecord("a bad day", "bad")]
    model = baseline_model("ngram", CLASSIFY, records, start=None, seed=0, report=lambda *_: None)
    assert model.checkpoint.labels == CLASSIFY.names
    assert not model.pretrained
    assert not model.checkpoint.untrained  # it will be fitted before it is saved
