"""The model a training starts from: its tokenizer, new heads, dropout, and what cannot be started from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.starting import CLASSIFY, TEXTS, start
from torch import nn

from regard.checkpoint.source import from_preset
from regard.errors import InputError
from regard.model.attention import Attention
from regard.tasks.translate import Translate
from regard.text.tokenizer import Tokenizer
from regard.training.head_init.new_head import new_heads
from regard.training.initial_model import set_dropout


def test_a_preset_learns_its_tokenizer_from_the_texts() -> None:
    model = start(preset="tiny-bert")
    assert not model.pretrained
    assert model.tokenizer.decode(model.tokenizer.encode("a bad day").ids[1:-1]) == "a bad day"
    assert model.checkpoint.config.vocabulary == model.tokenizer.size <= 100
    assert model.checkpoint.labels == CLASSIFY.names


def test_a_preset_takes_a_given_tokenizer(small_tokenizer: Tokenizer) -> None:
    model = start(preset="tiny-bert", tokenizer=small_tokenizer)
    assert model.tokenizer is small_tokenizer
    assert model.checkpoint.config.vocabulary == small_tokenizer.size


def test_the_seed_decides_the_weights(small_tokenizer: Tokenizer) -> None:
    one, same, other = (start(preset="tiny-bert", tokenizer=small_tokenizer, seed=seed) for seed in (1, 1, 2))
    weights = [
        model.checkpoint.network.get_parameter("encoder.embeddings.tokens.weight") for model in (one, same, other)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_folder_keeps_its_weights_and_gets_a_new_head(encoder_folder: Path, small_tokenizer: Tokenizer) -> None:
    model = start(start=encoder_folder)
    assert model.pretrained
    assert "classification head" in new_heads(model.checkpoint)
    name = "encoder.embeddings.tokens.weight"
    before = from_preset("tiny-bert", heads={}, seed=5, vocabulary=small_tokenizer.size).network.get_parameter(name)
    assert torch.equal(model.checkpoint.network.get_parameter(name), before)
    again = start(start=encoder_folder)
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


def test_a_pretrained_model_keeps_its_vocabulary(encoder_folder: Path) -> None:
    with pytest.raises(InputError, match="has its own tokenizer; leave tokenizer out"):
        start(start=encoder_folder, tokenizer=encoder_folder)
    with pytest.raises(InputError, match="has its vocabulary already; leave vocabularies out"):
        start(start=encoder_folder, targets=TEXTS)


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
