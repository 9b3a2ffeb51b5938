"""Settings of Pegasus, and of the Transformer with norms before each sublayer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.presets import transformer_config
from tests.references import transformers

from regard.checkpoint.families import family_for, family_of
from regard.checkpoint.families.pegasus import PEGASUS, TRANSFORMER_PRENORM, read, tables, write
from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError
from regard.ragged import Ragged


@pytest.mark.parametrize("name", PEGASUS.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**PEGASUS.defaults, **write(config)}) == config


def test_the_fields_of_published_folders_are_accepted() -> None:
    hf = {**PEGASUS.defaults, **write(transformer_config("tiny-pegasus"))}
    published = {"normalize_before": True, "add_final_layer_norm": True, "static_position_embeddings": True}
    assert read({**hf, **published}) == read(hf)
    with pytest.raises(FolderError, match="normalize_before is False"):
        read({**hf, "normalize_before": False})


def test_a_transformer_with_norms_first_is_written_as_pegasus() -> None:
    config = replace(transformer_config("tiny-transformer"), norm_first=True)
    family = family_for("transformer", config)
    assert family is TRANSFORMER_PRENORM
    written = {"model_type": "pegasus", **family.write(config)}
    assert family_of(written) is TRANSFORMER_PRENORM
    assert family.read({**family.defaults, **written}) == config
    assert family_of({"model_type": "pegasus"}) is PEGASUS


def test_two_vocabularies_with_norms_first_are_written_in_our_format() -> None:
    config = replace(transformer_config("tiny-transformer"), norm_first=True, target_vocabulary=90)
    assert not family_for("transformer", config).in_transformers


def test_transformers_computes_the_same_with_norms_first(tmp_path) -> None:
    checkpoint = from_preset("tiny-transformer", norm_first=True)
    write_folder(tmp_path, checkpoint)
    loading: Any = transformers.PegasusForConditionalGeneration.from_pretrained
    there, report = loading(tmp_path, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    source, target = [5, 6, 7, 8, 1], [0, 9, 10]
    with torch.no_grad():
        expected = there.eval()(torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
        for network in (checkpoint.network, read_folder(tmp_path).network):
            output = network.eval()(Ragged.of([source]), Ragged.of([target]))
            torch.testing.assert_close(output.logits, expected, atol=1e-5, rtol=1e-5)


def test_there_is_a_table_of_positions_for_each_stack() -> None:
    config = transformer_config("tiny-pegasus")
    assert {table.shape for table in tables(config).values()} == {(config.max_tokens, config.width)}


def test_other_positions_than_sines_and_cosines_are_rejected(tmp_path) -> None:
    write_folder(tmp_path, from_preset("tiny-pegasus"))
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith("decoder.embed_positions.weight"))
    table = tensors[name]
    save_file({**tensors, name: table.bfloat16()}, path)
    read_folder(tmp_path)
    save_file({**tensors, name: table.flip(0).contiguous()}, path)
    with pytest.raises(FolderError, match=f"{name} differs from what a pegasus model computes"):
        read_folder(tmp_path)


def test_an_unknown_layout_of_positions_is_rejected() -> None:
    config = replace(transformer_config("tiny-transformer"), norm_first=True)
    written = {**PEGASUS.defaults, **TRANSFORMER_PRENORM.write(config), "sinusoidal_layout": "other"}
    with pytest.raises(FolderError, match="sinusoidal_layout is"):
        TRANSFORMER_PRENORM.read(written)
