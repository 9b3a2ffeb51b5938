"""The model a training starts from: its tokenizer, new heads, dropout, and what cannot be started from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import InputError
from regard.model.attention import Attention
from regard.tasks.classify import Classify
from regard.tasks.pair import Pair
from regard.tasks.tag import Tag
from regard.tasks.translate import Translate
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer
from regard.training.initial_model import (
    InitialModel,
    initial_model,
    new_heads,
    preset_config,
    set_dropout,
    vocabulary_of,
)

TEXTS = ["a good day", "a bad day", "the day was long"]
CLASSIFY = Classify(names=("bad", "good", "so so"))


def start(task: Any = CLASSIFY, **options: Any) -> InitialModel:
    return initial_model(
        task, **{"start": None, "preset": None, "tokenizer": None, "texts": TEXTS, "seed": 0, **options}
    )


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer_from_texts(TEXTS * 5, size=40)


@pytest.fixture
def encoder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """A folder of an encoder without a head."""
    folder = tmp_path / "encoder"
    write_folder(folder, from_preset("tiny-bert", heads={}, seed=5, vocabulary=tokenizer.size))
    tokenizer.save(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("regard", None)  # marks weights that were never trained
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_preset_learns_its_tokenizer_from_the_texts() -> None:
    model = start(preset="tiny-bert")
    assert not model.pretrained
    assert model.tokenizer.decode(model.tokenizer.encode("a bad day").ids[1:-1]) == "a bad day"
    assert model.checkpoint.config.vocabulary == model.tokenizer.size <= 100
    assert model.checkpoint.labels == CLASSIFY.names


def test_a_preset_takes_a_given_tokenizer(tokenizer: Tokenizer) -> None:
    model = start(preset="tiny-bert", tokenizer=tokenizer)
    assert model.tokenizer is tokenizer
    assert model.checkpoint.config.vocabulary == tokenizer.size


def test_the_seed_decides_the_weights(tokenizer: Tokenizer) -> None:
    one, same, other = (start(preset="tiny-bert", tokenizer=tokenizer, seed=seed) for seed in (1, 1, 2))
    weights = [
        model.checkpoint.network.get_parameter("encoder.embeddings.tokens.weight") for model in (one, same, other)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_folder_keeps_its_weights_and_gets_a_new_head(encoder: Path, tokenizer: Tokenizer) -> None:
    model = start(start=encoder)
    assert model.pretrained
    assert "classification head" in new_heads(model.checkpoint)
    name = "encoder.embeddings.tokens.weight"
    before = from_preset("tiny-bert", heads={}, seed=5, vocabulary=tokenizer.size).network.get_parameter(name)
    assert torch.equal(model.checkpoint.network.get_parameter(name), before)
    again = start(start=encoder)
    for one, other in zip(model.checkpoint.network.parameters(), again.checkpoint.network.parameters(), strict=True):
        assert torch.equal(one, other)  # the new head is initialized from the seed


def test_config_json_gets_the_problem_type_and_the_prefix() -> None:
    model = start(preset="tiny-bert", prefix="query: ")
    assert model.checkpoint.hf_config["prefix"] == "query: "
    assert model.checkpoint.hf_config["problem_type"] == CLASSIFY.problem_type
    assert "prefix" not in start(preset="tiny-bert").checkpoint.hf_config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "minilm", "preset": "tiny-bert"}, "start='minilm' and preset='tiny-bert' were both given"),
        ({"preset": "tiny-gpt2"}, "classify needs a sequence head, but models of the family gpt2"),
        ({"task": Translate()}, "no network for translate was named"),
        ({"task": Translate(), "preset": "tiny-bert"}, "translate needs a network of kind encoder-decoder"),
        ({"task": Translate(), "preset": "tiny-t5", "targets": TEXTS}, "family t5 hold one vocabulary"),
        ({"preset": "tiny-bert", "texts": [chr(0x4E00 + n) for n in range(200)]}, 'preset "tiny-bert" is too small'),
    ],
)
def test_what_cannot_be_started_from(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        start(**options)


def test_a_pretrained_model_keeps_its_vocabulary(encoder: Path) -> None:
    with pytest.raises(InputError, match="has its own tokenizer; leave tokenizer out"):
        start(start=encoder, tokenizer=encoder)
    with pytest.raises(InputError, match="has its vocabulary already; leave vocabularies out"):
        start(start=encoder, targets=TEXTS)


def test_two_languages_have_a_vocabulary_each() -> None:
    model = start(Translate(), preset="tiny-transformer", targets=["ein guter Tag", "ein langer Tag"])
    target = model.tokenizer.target
    assert target is not None
    assert target.decode(target.encode("guter").ids) == "guter"
    assert (model.checkpoint.config.vocabulary, model.checkpoint.config.target_vocabulary) == (  # type: ignore[union-attr]
        model.tokenizer.size,
        target.size,
    )


def test_a_tokenizer_of_one_language_is_refused_for_two(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="separate vocabularies were requested, but the tokenizer has none"):
        start(Translate(), preset="tiny-transformer", tokenizer=tokenizer, targets=TEXTS)


def test_dropout_is_set_in_every_layer_of_a_transformer() -> None:
    network = start(preset="tiny-bert", dropout=0.35).checkpoint.network
    rates = {module.p for module in network.modules() if isinstance(module, nn.Dropout)}
    rates |= {module.dropout for module in network.modules() if isinstance(module, Attention)}
    assert rates == {0.35}


def test_dropout_of_recurrent_networks_is_between_layers() -> None:
    network = from_preset("tiny-lstm-language").network
    set_dropout(network, 0.35)
    layers = [module for module in network.modules() if isinstance(module, nn.Dropout | nn.RNNBase)]
    assert {getattr(module, "p", getattr(module, "dropout", None)) for module in layers} == {0.35}
    single = from_preset("tiny-gru").network
    set_dropout(single, 0.35)
    assert {module.dropout for module in single.modules() if isinstance(module, nn.RNNBase)} == {0.0}


def test_only_a_preset_is_trained_from_scratch() -> None:
    assert preset_config("tiny-gru") == from_preset("tiny-gru", weights=False).config
    assert preset_config(None) is None


def test_a_byte_level_vocabulary_has_at_least_all_bytes() -> None:
    assert vocabulary_of("tiny-modernbert") == ("bpe", 1000, "bert")
    assert vocabulary_of("tiny-bert") == ("wordpiece", 100, None)


@pytest.mark.parametrize("name", ["lstm-characters", "gru-characters"])
def test_character_models_have_a_vocabulary_of_characters(name: str) -> None:
    assert vocabulary_of(name)[:2] == ("char", 1000)
    config = from_preset(name, weights=False).config
    assert (config.layers, config.width, config.kind) == (2, 512, "decoder")


def as_sentence_encoder(folder: Path, pooling: str) -> Path:
    """The folder with the files in which sentence-transformers stores its pooling."""
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    return folder


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
    encoder: Path, settings: dict[str, Any], added_layers: int, *, probe: bool
) -> None:
    layers = start(start=encoder).checkpoint.config.layers
    model = start(start=as_sentence_encoder(encoder, "mean_tokens"), **settings)
    assert (model.checkpoint.config.layers, model.probe) == (layers + added_layers, probe)


def test_first_token_pooling_needs_no_layer(encoder: Path) -> None:
    layers = start(start=encoder).checkpoint.config.layers
    model = start(start=as_sentence_encoder(encoder, "cls_token"))
    assert (model.checkpoint.config.layers, model.probe) == (layers, True)
    dense: Any = model.checkpoint.network.get_submodule("heads.pooled.transform.dense")
    assert torch.equal(dense.weight, torch.eye(len(dense.weight)))


def test_other_encoders_keep_a_random_head_on_the_first_token(encoder: Path) -> None:
    model = start(start=encoder)
    assert not model.probe


def test_pairs_start_from_a_probe_on_request_only(encoder: Path) -> None:
    task = Pair(names=("a", "b"))
    as_sentence_encoder(encoder, "mean_tokens")
    plain = start(task, start=encoder)
    probed = start(task, start=encoder, head_init="probe")
    assert (plain.probe, probed.probe) == (False, True)
    assert plain.pooling == probed.pooling == "mean"


def test_contrastive_training_needs_one_label_per_text(encoder: Path) -> None:
    task = Classify(names=("a", "b"), kind="multi")
    with pytest.raises(InputError, match="head_init='contrastive' needs one label per text"):
        start(task, start=encoder, head_init="contrastive")


def test_a_preset_has_no_vectors_to_probe() -> None:
    with pytest.raises(InputError, match="head_init='probe' was given, but preset='tiny-bert' has random weights"):
        start(preset="tiny-bert", head_init="probe")


def test_only_classification_has_a_head_to_probe() -> None:
    with pytest.raises(InputError, match="pooling='mean' was given, but the task is tag; only classify and pair"):
        start(Tag(names=("O", "B-a")), preset="tiny-bert", pooling="mean")


def test_a_trained_head_keeps_the_vector_it_reads(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = tmp_path / "classifier"
    checkpoint = from_preset("tiny-bert", heads={"sequence": 3}, seed=5, vocabulary=tokenizer.size)
    write_folder(folder, replace(checkpoint, labels=CLASSIFY.names, untrained=False))
    tokenizer.save(folder)
    assert not start(start=folder).probe
    with pytest.raises(InputError, match="pooling='mean' is for a new classification head"):
        start(start=folder, pooling="mean")
