"""Baselines are fitted by their task."""

from __future__ import annotations

from regard.baselines.fit import fit_baseline
from regard.baselines.ngram import build_ngram
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import ClassifyRecord
from regard.tasks.classify import Classify


def test_a_classifier_is_fitted_to_its_examples() -> None:
    records = [ClassifyRecord(f"{word} soup", label) for word, label in (("warm", "good"), ("cold", "bad")) * 5]
    task = Classify.from_records(records)
    checkpoint, tokenizer = build_ngram(task, records, lambda *_: None)
    examples = task.examples(records, Preprocessing(tokenizer, checkpoint.config), labeled=True)
    fit_baseline(checkpoint.network, task, examples, seed=0, report=lambda *_: None)
    predicted = checkpoint.network(examples.take(range(10)).tokens).logits.argmax(1)
    assert predicted.tolist() == examples.by_sequence["label"].tolist()
