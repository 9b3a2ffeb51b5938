"""What is special about each family: settings that are read and written, and those that are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.presets import transformer_config
from tests.references import transformers

from regard.checkpoint.families import FAMILIES, family_for, family_of
from regard.checkpoint.families.bag import NGRAM_LANGUAGE
from regard.checkpoint.families.marian import MARIAN, MARIAN_SEPARATE, TRANSFORMER, TRANSFORMER_SEPARATE
from regard.checkpoint.families.modernbert import global_every, layer_types
from regard.checkpoint.families.pegasus import PEGASUS, TRANSFORMER_PRENORM, tables
from regard.checkpoint.families.t5 import T5, T5_GATED
from regard.checkpoint.family import Family
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.config import BagConfig, ModelConfig
from regard.errors import FolderError
from regard.model.bag import BagNetwork
from regard.ragged import Ragged

NORMS_FIRST = replace(transformer_config("tiny-transformer"), norm_first=True)
PRESETS = [(family, name) for family in FAMILIES.values() if family is not NGRAM_LANGUAGE for name in family.presets]


def read(family: str, **fields: Any) -> ModelConfig:
    """The settings of a config.json with these fields."""
    config = FAMILIES[family].read({**FAMILIES[family].defaults, **fields})
    assert isinstance(config, ModelConfig)
    return config


@pytest.mark.parametrize(("family", "name"), PRESETS, ids=[name for _, name in PRESETS])
def test_settings_survive_config_json(family: Family, name: str) -> None:
    written = family.for_config(family.presets[name])
    assert written.read({**family.defaults, **written.write(family.presets[name])}) == family.presets[name]


@pytest.mark.parametrize(
    ("family", "fields", "expected"),
    [
        ("gpt2", {"n_embd": 96, "n_inner": None}, {"ffn_width": 384}),
        ("gpt2", {"n_embd": 96, "n_inner": 100}, {"ffn_width": 100}),
        ("t5", {"tie_word_embeddings": True}, {"output": "scaled"}),
        ("t5", {"tie_word_embeddings": False}, {"output": "plain"}),
        ("roberta", {"max_position_embeddings": 514, "pad_token_id": 1}, {"max_tokens": 512}),
        ("electra", {"embedding_size": 256}, {"embedding_width": None}),
        ("electra", {"embedding_size": 64}, {"embedding_width": 64}),
        ("distilbert", {}, {"segments": 0}),
        (
            "albert",
            {"num_hidden_layers": 6, "num_hidden_groups": 2, "embedding_size": 32},
            {"layers": 6, "distinct_layers": 2, "embedding_width": 32},
        ),
    ],
)
def test_fields_of_config_json(family: str, fields: dict[str, Any], expected: Mapping[str, Any]) -> None:
    config = read(family, **fields)
    assert {name: getattr(config, name) for name in expected} == expected


def test_fields_of_parts() -> None:
    assert read("distilbert").pool.activation == "relu"
    assert read("bart").positions.offset == read("roberta").positions.offset == 2
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    assert read("llama", **sizes, head_dim=16).attention.head_width is None
    assert read("llama", **sizes, head_dim=8).attention.head_width == 8


@pytest.mark.parametrize(
    ("family", "fields", "message"),
    [
        ("bart", {"decoder_attention_heads": 8}, "decoder_attention_heads"),
        ("pegasus", {"normalize_before": False}, "normalize_before is False"),
        ("recurrent-language", {"kind": "encoder"}, "kind"),
        ("elmo", {"kind": "decoder"}, "kind"),
    ],
)
def test_fields_that_are_refused(family: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FolderError, match=message):
        read(family, **fields)


def test_the_name_of_the_output_bias_of_bert_depends_on_tying() -> None:
    for tied, name in ((True, "cls.predictions.bias"), (False, "cls.predictions.decoder.bias")):
        assert FAMILIES["bert"].head_names(["masked"], tied=tied)["heads.masked.output.bias"] == name


@pytest.mark.parametrize("every", [0, 1, 2, 3, 5])
def test_types_of_layers_say_which_are_global(every: int) -> None:
    types = layer_types(every, 5)
    assert [kind == "full_attention" for kind in types] == [bool(every) and layer % every == 0 for layer in range(5)]
    settings = {"layer_types": types, "num_hidden_layers": 5, "global_attn_every_n_layers": 3}
    assert global_every(settings) == every


def test_types_of_layers_without_a_period_are_refused() -> None:
    types = ["full_attention", "full_attention", "sliding_attention", "full_attention"]
    with pytest.raises(FolderError, match="layer_types"):
        global_every({"layer_types": types, "num_hidden_layers": 4, "global_attn_every_n_layers": 3})


# variants of a family


@pytest.mark.parametrize(
    ("family", "name", "variant", "changes"),
    [
        (T5, "tiny-t5", T5_GATED, {"activation": "geglu-tanh"}),
        (MARIAN, "tiny-marian", MARIAN_SEPARATE, {"target_vocabulary": 90}),
        (TRANSFORMER, "tiny-transformer", TRANSFORMER_SEPARATE, {"target_vocabulary": 90}),
    ],
)
def test_a_variant_is_selected_by_settings_and_by_config_json(
    family: Family, name: str, variant: Family, changes: dict[str, Any]
) -> None:
    plain = transformer_config(name)
    for config, expected in ((plain, family), (replace(plain, **changes), variant)):
        assert family.for_config(config) is expected
        assert family_of({"model_type": family.model_type or family.name, **family.write(config)}) is expected
        assert family.read({**family.defaults, **family.write(config)}) == config


def test_a_transformer_with_norms_first_is_written_as_pegasus() -> None:
    family = family_for("transformer", NORMS_FIRST)
    assert family is TRANSFORMER_PRENORM
    written = {"model_type": "pegasus", **family.write(NORMS_FIRST)}
    assert family_of(written) is TRANSFORMER_PRENORM
    assert family.read({**family.defaults, **written}) == NORMS_FIRST
    assert family_of({"model_type": "pegasus"}) is PEGASUS
    assert not family_for("transformer", replace(NORMS_FIRST, target_vocabulary=90)).in_transformers
    published = {"normalize_before": True, "add_final_layer_norm": True, "static_position_embeddings": True}
    assert read("pegasus", **published) == read("pegasus")


def test_transformers_computes_the_same_with_norms_first(tmp_path: Path) -> None:
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


# tables of positions that other libraries store


def test_the_tables_of_positions_are_those_of_each_layout() -> None:
    written = {name: tables(transformer_config(f"tiny-{name}")) for name in ("marian", "transformer", "pegasus")}
    for name, stored in written.items():
        config = transformer_config(f"tiny-{name}")
        assert len(stored) == 2
        assert {table.shape for table in stored.values()} == {(config.max_tokens, config.width)}
    halves, alternating = (next(iter(written[name].values())) for name in ("marian", "transformer"))
    torch.testing.assert_close(halves[:, :16], alternating[:, ::2])
    torch.testing.assert_close(halves[:, 16:], alternating[:, 1::2])


def test_other_positions_than_sines_and_cosines_are_rejected(tmp_path: Path) -> None:
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
    written = {**PEGASUS.defaults, **TRANSFORMER_PRENORM.write(NORMS_FIRST), "sinusoidal_layout": "other"}
    with pytest.raises(FolderError, match="sinusoidal_layout is"):
        TRANSFORMER_PRENORM.read(written)


# networks without attention


@pytest.mark.parametrize("family", ["ngram", "static"])
def test_a_folder_without_attention_is_read_as_it_was_written(family: str, tmp_path: Path) -> None:
    config = BagConfig(7, 3, weighting="tfidf" if family == "ngram" else "mean", word_rows=2, hidden=4, dropout=0.1)
    checkpoint = Checkpoint(family, config, BagNetwork(config, {"sequence": 2}).eval(), labels=("no", "yes"))
    write_folder(tmp_path / "model", checkpoint)
    again = read_folder(tmp_path / "model")
    assert (again.family, again.config, again.labels) == (family, config, ("no", "yes"))
    for name, weight in checkpoint.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("weighting", "sum", 'weighting "sum" is not known'), ("width", 4, r"encoder\.tokens\.weight")],
)
def test_a_wrong_setting_of_a_network_without_attention_is_named(
    field: str, value: object, message: str, tmp_path: Path
) -> None:
    config = BagConfig(7, 3)
    write_folder(tmp_path / "model", Checkpoint("static", config, BagNetwork(config, {"sequence": 2}).eval()))
    file = tmp_path / "model/config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(FolderError, match=message):
        read_folder(tmp_path / "model")
