"""The baseline `ngram` for tags: logistic regression on features of words and their neighbors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import samples
from regard.baselines.tagger import NEIGHBORS, build_tagger, window_rows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import TagRecord
from regard.errors import InputError
from regard.tasks.tag import Tag
from regard.text.features.words import FEATURES


def test_rows_have_the_features_of_a_word_and_its_neighbors() -> None:
    records = [
        TagRecord.from_tokens(["Anna", "sleeps"], ["B-PER", "O"]),
        TagRecord.from_tokens(["in", "Rome", "today"], ["O", "B-LOC", "O"]),
    ]
    task = Tag.from_records(records)
    checkpoint, tokenizer = build_tagger(task, records)
    examples = task.examples(records, Preprocessing(tokenizer, checkpoint.config), labeled=True)
    rows, targets = window_rows(examples, checkpoint.config.vocabulary)
    assert [task.names[number] for number in targets.tolist()] == ["B-PER", "O", "O", "B-LOC", "O"]
    assert (rows.bounds.diff() // FEATURES).tolist() == [2, 2, 3, 3, 3]  # words of the same text around it
    own = tokenizer.ids_batch(["Rome"])[0]
    middle = rows.columns[rows.bounds[3] : rows.bounds[4]].numpy()
    assert set(np.asarray(own) + NEIGHBORS * checkpoint.config.vocabulary) <= set(middle.tolist())


def test_texts_without_words() -> None:
    records = [TagRecord("", (), ()), TagRecord("", (), ())]
    with pytest.raises(InputError, match="have no words"):
        build_tagger(Tag(names=("O", "B-X")), records)


def test_a_tagger_is_trained_loaded_and_scored(tmp_path: Path) -> None:
    result = regard.train(samples.path("places"), preset="ngram", out=tmp_path / "run", device="cpu")
    assert result.scores["f1"].value > 0.4
    model = regard.load(tmp_path / "run")
    assert model.task == "tag"
    text = "We walked from Lyon to Paris, then home."
    found = model.predict([text])[0].json()["entities"]
    assert all(text[one["start"] : one["end"]] == one["text"] for one in found)
    assert regard.evaluate(model, samples.path("places")).scores["f1"].value > 0.9
    again = regard.load(model.save(tmp_path / "again"))
    for name, weight in model.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])


def test_sentences_of_documents_are_read_alone(tmp_path: Path) -> None:
    sentences = "Ada B-PER\nsings O\n\nOslo B-LOC\nlistens O\n\n"
    (tmp_path / "songs.conll").write_text(f"-DOCSTART- O\n\n{sentences}" * 4)
    result = regard.train(tmp_path / "songs.conll", preset="ngram", out=tmp_path / "run", dev_fraction=0)
    (answer,) = regard.load(result.folder).predict(["Ada sings"])
    assert [entity["label"] for entity in answer.json()["entities"]] == ["PER"]
