"""What a new classification head starts from, and which vector it reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.sentence_encoder import as_sentence_encoder
from tests.training.starting import CLASSIFY, start

from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import InputError
from regard.tasks.classify import Classify
from regard.tasks.pair import Pair
from regard.tasks.tag import Tag
from regard.text.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("settings", "added_layers", "probe"),
    [
        ({}, 1, True),
        ({"rows": 10_000}, 1, False),
        ({"pooling": "first"}, 0, True),
        ({"head_init": "random"}, 1, False),
        ({"head_init": "random", "pooling": "first"}, 0, False),
    ],
)
def test_a_sentence_encoder_starts_from_a_probe_on_the_mean(
    encoder_folder: Path, settings: dict[str, Any], added_layers: int, *, probe: bool
) -> None:
    layers = start(start=encoder_folder).checkpoint.config.layers
    model = start(start=as_sentence_encoder(encoder_folder, "mean_tokens"), **settings)
    assert (model.checkpoint.config.layers, model.probe) == (layers + added_layers, probe)


def test_first_token_pooling_needs_no_layer(encoder_folder: Path) -> None:
    layers = start(start=encoder_folder).checkpoint.config.layers
    model = start(start=as_sentence_encoder(encoder_folder, "cls_token"))
    assert (model.checkpoint.config.layers, model.probe) == (layers, True)
    dense: Any = model.checkpoint.network.get_submodule("heads.pooled.transform.dense")
    assert torch.equal(dense.weight, torch.eye(len(dense.weight)))


def test_other_encoders_keep_a_random_head_on_the_first_token(encoder_folder: Path) -> None:
    model = start(start=encoder_folder)
    assert not model.probe


def test_pairs_start_from_a_probe_on_request_only(encoder_folder: Path) -> None:
    task = Pair(names=("a", "b"))
    as_sentence_encoder(encoder_folder, "mean_tokens")
    plain = start(task, start=encoder_folder)
    probed = start(task, start=encoder_folder, head_init="probe")
    assert (plain.probe, probed.probe) == (False, True)
    assert plain.pooling == probed.pooling == "mean"


def test_contrastive_training_needs_one_label_per_text(encoder_folder: Path) -> None:
    task = Classify(names=("a", "b"), kind="multi")
    with pytest.raises(InputError, match="head_init='contrastive' needs one label per text"):
        start(task, start=encoder_folder, head_init="contrastive")


def test_a_preset_has_no_vectors_to_probe() -> None:
    with pytest.raises(InputError, match="head_init='probe' was given, but preset='tiny-bert' has random weights"):
        start(preset="tiny-bert", head_init="probe")


def test_only_classification_has_a_head_to_probe() -> None:
    with pytest.raises(InputError, match="pooling='mean' was given, but the task is tag; only classify and pair"):
        start(Tag(names=("O", "B-a")), preset="tiny-bert", pooling="mean")


def test_a_trained_head_keeps_the_vector_it_reads(tmp_path: Path, small_tokenizer: Tokenizer) -> None:
    folder = tmp_path / "classifier"
    checkpoint = from_preset("tiny-bert", heads={"sequence": 3}, seed=5, vocabulary=small_tokenizer.size)
    write_folder(folder, replace(checkpoint, labels=CLASSIFY.names, untrained=False))
    small_tokenizer.save(folder)
    assert not start(start=folder).probe
    with pytest.raises(InputError, match="pooling='mean' is for a new classification head"):
        start(start=folder, pooling="mean")
