"""Folders are written so that they are read back the same."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.checkpoint.folders import configure, written
from tests.presets import transformer_config
from tests.references import transformers

from regard.checkpoint.check_tensors import tensor_mappings
from regard.checkpoint.families import FAMILIES
from regard.checkpoint.folder import read_folder
from regard.checkpoint.reading import config_json, default_prefix, preprocessing_of
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.text.learn import train_tokenizer_from_texts

# What a folder holds after it was written.


def test_layers_that_all_look_near_are_read_and_written(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-modernbert")
    configure(folder, layer_types=["sliding_attention"] * 4)
    checkpoint = read_folder(folder)
    assert checkpoint.config.attention.global_every == 0
    write_folder(tmp_path / "again", checkpoint)
    assert read_folder(tmp_path / "again").config == checkpoint.config
    ids = torch.arange(3, 40).unsqueeze(0)
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(tmp_path / "again")(ids).last_hidden_state[0]
        assert torch.allclose(checkpoint.network(Ragged.of(ids.tolist())).hidden, theirs, atol=1e-5)


def test_settings_that_are_not_known_survive(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    mine = {"my_own": {"deep": [1, 2]}, "finetuning_task": "sst2", "torch_dtype": "float32", "layer_norm_eps": 1e-7}
    configure(folder, **mine)
    write_folder(tmp_path / "again", read_folder(folder))
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert {key: config.get(key) for key in mine} == mine | {"torch_dtype": None}
    assert config["dtype"] == "float32"


def test_a_name_no_table_has_is_refused_before_anything_is_written() -> None:
    config = transformer_config("tiny-bert")
    made = Transformer(dataclasses.replace(config, attention=dataclasses.replace(config.attention, score="bilinear")))
    with pytest.raises(FolderError, match=r"the family bert has no name for encoder\.layers\.0\.attention"):
        tensor_mappings(made, FAMILIES["bert"], (), made.config)


# How a model reads texts, from the settings of its folder.


def test_the_prefix_of_config_json_comes_before_those_of_tasks() -> None:
    german, french = ({"prefix": f"translate English to {language}: "} for language in ("German", "French"))
    tasks = {"summarization": {"prefix": "summarize: "}, "translation_en_to_de": german}
    assert default_prefix({}) == default_prefix({"task_specific_params": [1]}) == ""
    assert default_prefix({"task_specific_params": tasks}) == german["prefix"]
    assert default_prefix({"prefix": "own: ", "task_specific_params": tasks}) == "own: "
    with pytest.warns(UserWarning, match="this model has 2 translation tasks"):
        assert default_prefix({"task_specific_params": {**tasks, "translation_en_to_fr": french}}) == german["prefix"]


def test_the_start_token_of_a_decoder_must_be_in_the_vocabulary() -> None:
    tokenizer = train_tokenizer_from_texts(["a small text"] * 9, kind="char")
    checkpoint = from_preset("tiny-t5")
    assert config_json(checkpoint)["decoder_start_token_id"] == 0
    assert preprocessing_of(checkpoint, tokenizer, prefix="to German: ").prefix == "to German: "
    wrong = replace(checkpoint, hf_config={**config_json(checkpoint), "decoder_start_token_id": 100})
    with pytest.raises(FolderError, match="decoder_start_token_id is 100, expected an id from 0 to 99"):
        preprocessing_of(wrong, tokenizer)
