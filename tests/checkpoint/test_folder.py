"""Folders are read strictly: what does not fit is named, old habits are read quietly, and nothing is lost."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

import regard
from regard.checkpoint.families import preset
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError, InputError
from regard.model.initialization import initialize
from regard.ragged import Ragged

WEIGHTS = "model.safetensors"
BATCH = Ragged.of([[5, 6, 7, 8], [9]])


def made(name: str, heads: Mapping[str, int] | None = None, **settings: Any) -> Checkpoint:
    """A preset with other heads, every tensor drawn, biases too, so that one in the wrong place shows."""
    chosen = preset(name)
    network = build_on_meta(chosen.config, chosen.heads if heads is None else heads)
    tensors = dict(network.named_parameters()) | {name: b for name, b in network.named_buffers() if b.is_meta}
    generator = torch.Generator().manual_seed(1)
    set_tensors(network, {path: torch.empty(tensor.shape) for path, tensor in tensors.items()})
    initialize(network, chosen.config, generator=generator)
    for parameter in network.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return Checkpoint(chosen.family, chosen.config, network.eval(), **settings)


def written(folder: Path, name: str, heads: Mapping[str, int] | None = None, **settings: Any) -> Path:
    write_folder(folder, made(name, heads, **settings))
    return folder


def change(folder: Path, edit: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    edit(tensors)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / WEIGHTS)


def configure(folder: Path, **settings: Any) -> None:
    config = json.loads((folder / "config.json").read_text()) | settings
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


def same(one: Checkpoint, other: Checkpoint) -> bool:
    left, right = one.network.state_dict(), other.network.state_dict()
    return set(left) == set(right) and all(torch.equal(tensor, right[name]) for name, tensor in left.items())


# strict


def test_all_that_does_not_fit_is_listed_in_one_error(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")

    def spoil(tensors: dict[str, Tensor]) -> None:
        del tensors["encoder.layer.0.attention.self.key.weight"]
        del tensors["embeddings.LayerNorm.bias"]
        tensors["encoder.layer.7.output.dense.weight"] = torch.zeros(2)
        tensors["adapter.weight"] = torch.zeros(2)
        tensors["pooler.dense.weight"] = torch.zeros(32, 31)
        tensors["encoder.layer.1.attention.self.query.weight"] = torch.zeros(33, 32)
        tensors["encoder.layer.1.attention.self.value.bias"] = torch.tensor(0.0)

    change(folder, spoil)
    with pytest.raises(FolderError) as caught:
        read_folder(folder)
    said = str(caught.value)
    assert said.startswith(f"{folder}: the tensors do not fit a bert model as config.json describes it.\n2 missing:\n")
    for line in (
        "  encoder.layer.0.attention.self.key.weight",
        "  embeddings.LayerNorm.bias",
        "2 unexpected:",
        "  encoder.layer.7.output.dense.weight",
        "  adapter.weight",
        "3 of the wrong shape or type:",
        "  pooler.dense.weight: (32, 31), expected (32, 32)",
        "  encoder.layer.1.attention.self.query.weight: (33, 32), expected (32, 32)",
        "  encoder.layer.1.attention.self.value.bias: (), expected (32,)",
    ):
        assert line in said.splitlines()


def test_parts_that_only_fit_together_do_not_fit(tmp_path: Path) -> None:
    """Queries with a row too many and keys with a row too few are as long together as they should be."""
    folder = written(tmp_path / "model", "tiny-bert")

    def shift(tensors: dict[str, Tensor]) -> None:
        stem = "encoder.layer.0.attention.self"
        tensors[f"{stem}.query.weight"], tensors[f"{stem}.key.weight"] = torch.zeros(33, 32), torch.zeros(31, 32)

    change(folder, shift)
    with pytest.raises(FolderError, match=r"2 of the wrong shape .*\n.*query.*\(33, 32\).*\n.*key.*\(31, 32\)"):
        read_folder(folder)


def test_nothing_is_read_before_everything_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    change(folder, lambda tensors: tensors.pop("pooler.dense.bias"))
    monkeypatch.setattr("regard.checkpoint.weights.StoredTensor.read", lambda *_: pytest.fail("a tensor was read"))
    with pytest.raises(FolderError, match="1 missing"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("name", "heads", "extra"),
    [
        ("tiny-bert", None, {"embeddings.position_ids": torch.arange(512).unsqueeze(0)}),
        ("tiny-bert", {"masked": 0}, {"bert.embeddings.position_ids": torch.arange(512)}),
        (
            "tiny-roberta",
            None,
            {"embeddings.position_ids": torch.arange(130), "embeddings.token_type_ids": torch.zeros(1)},
        ),
        (
            "tiny-gpt2",
            None,
            {"transformer.h.0.attn.bias": torch.ones(1, 1, 4, 4), "h.1.attn.masked_bias": torch.tensor(0)},
        ),
        ("tiny-llama", None, {"model.layers.1.self_attn.rotary_emb.inv_freq": torch.ones(4)}),
        (
            "tiny-t5",
            None,
            {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(32, 4)},
        ),
    ],
)
def test_what_is_known_and_not_needed_is_dropped(
    tmp_path: Path, name: str, heads: dict[str, int] | None, extra: dict[str, Tensor]
) -> None:
    folder = written(tmp_path / "model", name, heads)
    before = read_folder(folder)
    change(folder, lambda tensors: tensors.update(extra))
    assert same(read_folder(folder), before)


# old habits


RENAMED: dict[str, Callable[[str], str]] = {
    "gamma and beta": lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta"
    ),
    "without the prefix": lambda name: name.removeprefix("bert."),
    "with the prefix of parallel training": lambda name: f"module.{name}",
    "all of them": lambda name: f"module.{name.removeprefix('bert.').replace('LayerNorm.weight', 'LayerNorm.gamma')}",
}


@pytest.mark.parametrize("habit", RENAMED)
@pytest.mark.parametrize("heads", [{"masked": 0, "next": 0}, {"sequence": 2}])
def test_old_names(tmp_path: Path, habit: str, heads: dict[str, int]) -> None:
    folder = written(tmp_path / "model", "tiny-bert", heads)
    before = read_folder(folder)
    tensors = load_file(folder / WEIGHTS)
    renamed = {RENAMED[habit](name): tensor for name, tensor in tensors.items()}
    assert set(renamed) != set(tensors)
    save_file(renamed, folder / WEIGHTS)
    assert same(read_folder(folder), before)


def test_a_base_with_the_prefix(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    before = read_folder(folder)
    save_file({f"bert.{name}": tensor for name, tensor in load_file(folder / WEIGHTS).items()}, folder / WEIGHTS)
    assert same(read_folder(folder), before)


def test_a_tensor_under_two_names_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    change(folder, lambda tensors: tensors.update({"bert.pooler.dense.bias": torch.zeros(32)}))
    with pytest.raises(FolderError, match=r"bert\.pooler\.dense\.bias .*both name the tensor pooler\.dense\.bias"):
        read_folder(folder)


COPIES = {
    "tiny-bert": ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    "tiny-gpt2": ("lm_head.weight", "transformer.wte.weight"),
    "tiny-t5": ("lm_head.weight", "shared.weight"),
    "tiny-bart": ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    "tiny-modernbert": ("decoder.weight", "model.embeddings.tok_embeddings.weight"),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_tied_tensor_may_be_stored_once_or_twice_but_not_differently(tmp_path: Path, name: str) -> None:
    heads = {"masked": 0} if name in ("tiny-bert", "tiny-modernbert") else None
    folder = written(tmp_path / "model", name, heads)
    before = read_folder(folder)
    twin, original = COPIES[name]
    assert twin not in load_file(folder / WEIGHTS)
    change(folder, lambda tensors: tensors.update({twin: tensors[original]}))
    assert same(read_folder(folder), before)
    change(folder, lambda tensors: tensors.pop(original))
    assert same(read_folder(folder), before)
    change(folder, lambda tensors: tensors.update({original: tensors[twin] + 1e-3}))
    with pytest.raises(FolderError, match=f"{twin} differs from {original}"):
        read_folder(folder)


def test_words_of_encoder_and_decoder_must_agree_where_only_the_output_is_its_own(tmp_path: Path) -> None:
    chosen = preset("tiny-bart")
    config = dataclasses.replace(chosen.config, tied=False)
    checkpoint = dataclasses.replace(from_preset("tiny-bart", dtype=torch.float32), config=config)
    network = build_on_meta(config, chosen.heads)
    set_tensors(network, {path: torch.randn(tensor.shape) for path, tensor in network.named_parameters()})
    set_tensors(network, {"heads.language.bias": torch.randn(100)})
    write_folder(tmp_path / "model", dataclasses.replace(checkpoint, network=network))
    before = read_folder(tmp_path / "model")
    assert not torch.equal(
        before.network.state_dict()["heads.language.output.weight"],
        load_file(tmp_path / "model" / WEIGHTS)["model.shared.weight"],
    )
    twin = "model.encoder.embed_tokens.weight"
    change(tmp_path / "model", lambda tensors: tensors.update({twin: tensors["model.shared.weight"]}))
    assert same(read_folder(tmp_path / "model"), before)
    change(tmp_path / "model", lambda tensors: tensors.update({twin: tensors["model.shared.weight"] * 2}))
    with pytest.raises(FolderError, match=r"encoder\.embed_tokens\.weight differs from"):
        read_folder(tmp_path / "model")


def test_a_file_keeps_the_heads_it_has_beside_those_of_its_class(tmp_path: Path) -> None:
    """Published BERT weights are called BertForMaskedLM and carry the pooler and the next-sentence head as well."""
    folder = written(tmp_path / "model", "tiny-bert", {"masked": 0, "next": 0, "pooled": 0})
    before = read_folder(folder)
    configure(folder, architectures=["BertForMaskedLM"])
    found = read_folder(folder)
    assert same(found, before)
    output = found.network(BATCH)
    assert (output.logits.shape, output.next_sentence.shape, output.pooled.shape) == ((5, 100), (2, 2), (2, 32))
    write_folder(tmp_path / "again", found)
    assert json.loads((tmp_path / "again" / "config.json").read_text())["architectures"] == ["BertForPreTraining"]


def test_a_base_without_its_pooler(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    change(folder, lambda tensors: [tensors.pop(f"pooler.dense.{leaf}") for leaf in ("weight", "bias")])
    assert read_folder(folder).network(BATCH).pooled is None


def test_old_settings_of_rotary_positions(tmp_path: Path) -> None:
    """As they were written before they stood in one place; the reference reads them the same."""
    for name, old in {
        "tiny-llama": {"rope_parameters": ..., "rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}},
        "tiny-modernbert": {
            "rope_parameters": ...,
            "layer_types": ...,
            "global_rope_theta": 900.0,
            "local_rope_theta": 50.0,
            "global_attn_every_n_layers": 2,
        },
    }.items():
        folder = written(tmp_path / name, name, {})
        configure(folder, **old)
        ids = torch.arange(3, 40).unsqueeze(0)
        found = read_folder(folder)
        write_folder(tmp_path / f"{name} again", found)
        with torch.no_grad():
            said = found.network(Ragged.of(ids.tolist())).hidden
            for place in (folder, tmp_path / f"{name} again"):
                theirs = transformers.AutoModel.from_pretrained(place)(ids).last_hidden_state[0]
                assert torch.allclose(said, theirs, atol=1e-5)


# settings that cannot be read


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("tiny-bert", {"model_type": "brt"}, 'the family "brt" is not known. Did you mean "bert"?'),
        ("tiny-bert", {"model_type": ...}, 'has no "model_type". Expected one of: bert, roberta'),
        ("tiny-bert", {"model_type": ["bert"]}, 'has no "model_type"'),
        ("tiny-bert", {"architectures": ["BertForMaskdLM"]}, 'Did you mean "BertForMaskedLM"?'),
        ("tiny-bert", {"architectures": "BertModel"}, "expected a list with the name of a class"),
        ("tiny-bert", {"architectures": [{}]}, "expected a list with the name of a class"),
        ("tiny-bert", {"vocab_size": "100"}, "vocab_size is '100', expected a whole number."),
        ("tiny-bert", {"vocab_size": 100.0}, "vocab_size is 100.0, expected a whole number."),
        ("tiny-bert", {"vocab_size": None}, "vocab_size is None, expected a whole number."),
        ("tiny-bert", {"num_hidden_layers": True}, "num_hidden_layers is True, expected a whole number."),
        ("tiny-bert", {"num_hidden_layers": 10**9}, "layers is 1000000000, expected at most 4,096."),
        ("tiny-bert", {"num_hidden_layers": 0}, "layers must be at least 1, not 0."),
        ("tiny-bert", {"layer_norm_eps": -1}, "eps of the norms must be above 0 and below 1, not -1."),
        ("tiny-bert", {"layer_norm_eps": 0}, "eps of the norms must be above 0 and below 1, not 0."),
        ("tiny-bert", {"hidden_dropout_prob": 1.5}, "dropout must be at least 0 and below 1, not 1.5."),
        ("tiny-bert", {"attention_probs_dropout_prob": -0.1}, "attention dropout must be at least 0 and below 1"),
        ("tiny-bert", {"initializer_range": -0.02}, "the spread of initial weights must be a number of at least 0"),
        ("tiny-bert", {"type_vocab_size": -2}, "segments must be at least 0, not -2."),
        ("tiny-gpt2", {"layer_norm_epsilon": -1e-5}, "eps of the norms must be above 0"),
        ("tiny-t5", {"relative_attention_num_buckets": 1}, "at least 4 buckets, not 1."),
        ("tiny-modernbert", {"local_attention": -8}, "window must be at least 0, not -4."),
        ("tiny-bert", {"hidden_size": 10**18}, "heads do not divide|cannot be built|expected at most"),
        ("tiny-bert", {"hidden_dropout_prob": "0.1"}, "hidden_dropout_prob is '0.1', expected a number."),
        ("tiny-bert", {"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob is nan, expected a number."),
        ("tiny-bert", {"hidden_dropout_prob": 3}, "dropout must be at least 0 and below 1"),
        ("tiny-bert", {"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', expected true or false."),
        ("tiny-bert", {"hidden_act": 5}, "hidden_act is 5, expected a text."),
        ("tiny-bert", {"hidden_act": "gelo"}, 'hidden_act "gelo" is not known. Did you mean "gelu"?'),
        ("tiny-bert", {"num_attention_heads": 5}, "5 heads do not divide the width 32. Use 4 heads"),
        ("tiny-bert", {"num_attention_heads": 0}, "heads must be at least 1, not 0."),
        ("tiny-bert", {"max_position_embeddings": 0}, "max_tokens must be at least 1, not 0"),
        ("tiny-bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("tiny-bert", {"is_decoder": True}, "is_decoder is True, but this family is read only with False."),
        ("tiny-bert", {"quantization_config": {"bits": 8}}, "quantization_config is {'bits': 8}"),
        ("tiny-bert", {"architectures": ["BertForTokenClassification"], "num_labels": "x"}, "num_labels is 'x'"),
        ("tiny-bert", {"id2label": ["a"]}, "\"id2label\" is ['a'], expected labels by number."),
        ("tiny-bert", {"id2label": {"a": "b"}}, 'a key of "id2label" is not a number'),
        ("tiny-bert", {"id2label": {"0": "a", "2": "b"}}, "must number labels from 0 without a gap, not [0, 2]."),
        ("tiny-roberta", {"max_position_embeddings": 2}, "max_position_embeddings must be more than 2"),
        ("tiny-albert", {"inner_group_num": 2}, "inner_group_num is 2"),
        ("tiny-gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ("tiny-gpt2", {"n_inner": "64"}, "n_inner is '64', expected a whole number."),
        ("tiny-llama", {"attention_bias": True}, "attention_bias is True"),
        ("tiny-llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ("tiny-llama", {"num_key_value_heads": 3}, "3 key-value heads do not divide 4 heads."),
        ("tiny-llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ("tiny-llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ("tiny-llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, 'rope_type "dynamic" cannot be'),
        ("tiny-llama", {"rope_parameters": {"rope_type": "linear"}}, "lacks the setting 'factor'."),
        ("tiny-llama", {"rope_parameters": "linear"}, "cannot be read"),
        ("tiny-modernbert", {"attention_bias": True}, "attention_bias is True"),
        ("tiny-modernbert", {"layer_types": ["sliding_attention", "full_attention"] * 2}, "each n-th from the first"),
        ("tiny-modernbert", {"layer_types": ["full_attention"] * 3}, "of 4 layers, each n-th from the first"),
        ("tiny-modernbert", {"layer_types": ..., "global_attn_every_n_layers": 0}, "expected at least 1."),
        ("tiny-modernbert", {"classifier_pooling": "max"}, 'classifier_pooling "max" is not known.'),
        ("tiny-modernbert", {"classifier_activation": "elu"}, 'classifier_activation "elu" is not known.'),
        ("tiny-modernbert", {"hidden_activation": "relu"}, 'hidden_activation "relu" has no gated form here.'),
        ("tiny-t5", {"feed_forward_proj": "gated-relu"}, 'feed_forward_proj "gated-relu" is not known.'),
        ("tiny-bart", {"decoder_ffn_dim": 3}, "decoder_ffn_dim is 3, but this family is read only with 128."),
        ("tiny-marian", {"decoder_vocab_size": 7}, "decoder_vocab_size is 7, but this family is read only with 100"),
        (
            "tiny-marian",
            {"share_encoder_decoder_embeddings": 1},
            "share_encoder_decoder_embeddings is 1, expected true",
        ),
    ],
)
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, name: str, settings: dict[str, Any], says: str) -> None:
    folder = written(tmp_path / "model", name)
    configure(folder, **settings)
    with pytest.raises(FolderError) as caught:
        read_folder(folder)
    said = str(caught.value)
    assert said.startswith(f"{folder}/config.json")
    assert any(choice in said for choice in says.split("|"))
    assert said.count("config.json") == 1


def test_layers_that_all_look_near_are_read_and_written(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-modernbert")
    configure(folder, layer_types=["sliding_attention"] * 4)
    found = read_folder(folder)
    assert found.config.attention.global_every == 0
    write_folder(tmp_path / "again", found)
    assert read_folder(tmp_path / "again").config == found.config
    ids = torch.arange(3, 40).unsqueeze(0)
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(tmp_path / "again")(ids).last_hidden_state[0]
        assert torch.allclose(found.network(Ragged.of(ids.tolist())).hidden, theirs, atol=1e-5)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"is not a folder\. Expected a model folder"):
        read_folder(tmp_path / "nothing")
    with pytest.raises(FolderError, match=r"has no config\.json"):
        read_folder(tmp_path)


# other heads


def test_a_head_that_is_there_is_kept(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 3}, labels=("a", "b", "c"))
    before, found = read_folder(folder), read_folder(folder, heads={"sequence": 3})
    assert same(before, found)
    assert (found.new_tensors, found.labels) == ((), ("a", "b", "c"))


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta", "tiny-distilbert", "tiny-electra", "tiny-modernbert"])
@pytest.mark.parametrize("there", [{}, {"masked": 0}, {"token": 3}])
def test_a_head_that_is_not_there_starts_anew_and_says_so(tmp_path: Path, name: str, there: dict[str, int]) -> None:
    folder = written(tmp_path / "model", name, there)
    before, found = read_folder(folder), read_folder(folder, heads={"sequence": 3})
    assert {"heads.sequence.output.weight", "heads.sequence.output.bias"} <= set(found.new_tensors)
    assert all(path.startswith("heads.") for path in found.new_tensors)
    left, right = before.network.state_dict(), found.network.state_dict()
    base = [path for path in left if path.startswith("encoder.")]
    assert base
    assert all(torch.equal(left[path], right[path]) for path in base)
    assert right["heads.sequence.output.weight"].shape == (3, 32)
    assert 0 < right["heads.sequence.output.weight"].std() < 0.1
    assert not any(tensor.is_meta for tensor in right.values())


def test_a_head_with_more_classes_starts_anew(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 3}, labels=("a", "b", "c"))
    found = read_folder(folder, heads={"sequence": 5})
    assert found.new_tensors == ("heads.sequence.output.weight", "heads.sequence.output.bias")
    assert found.labels is None
    write_folder(tmp_path / "again", found)
    again = read_folder(tmp_path / "again")
    assert same(found, again)
    assert again.labels == tuple(f"LABEL_{i}" for i in range(5))


def test_a_head_of_tokens_is_not_taken_for_one_of_texts(tmp_path: Path) -> None:
    """Both are called "classifier" and have the same shape."""
    folder = written(tmp_path / "model", "tiny-bert", {"token": 3})
    stored = load_file(folder / WEIGHTS)["classifier.weight"]
    found = read_folder(folder, heads={"sequence": 3})
    assert "heads.sequence.output.weight" in found.new_tensors
    assert not torch.equal(found.network.get_parameter("heads.sequence.output.weight"), stored)


def test_fresh_weights_follow_the_seed_in_the_order_of_the_network(tmp_path: Path) -> None:
    """And not the order of a set of names, which differs from one process to the next."""
    folder = written(tmp_path / "model", "tiny-roberta", {})
    torch.manual_seed(0)
    found = read_folder(folder, heads={"pooled": 0, "sequence": 2, "token": 3, "span": 0, "masked": 0})
    torch.manual_seed(0)
    weights = [path for path in found.new_tensors if path.endswith(".weight") and "norm" not in path]
    assert len(weights) == 5
    for path in weights:
        tensor = found.network.get_parameter(path)
        assert torch.equal(tensor, torch.empty(tensor.shape).normal_(0, 0.02))


def test_a_base_may_be_asked_for_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"masked": 0, "next": 0})
    assert list(read_folder(folder, heads={}).network.heads) == []


def test_an_unknown_head_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'head "sequnce" is not known\. Did you mean "sequence"\?'):
        read_folder(written(tmp_path / "model", "tiny-bert"), heads={"sequnce": 2})


def test_a_class_that_is_not_known_gives_its_base(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 1})
    configure(folder, architectures=["BertForMultipleChoice"])
    assert "heads.sequence.output.weight" in read_folder(folder, heads={"sequence": 1}).new_tensors


def test_a_bias_that_may_be_absent_starts_at_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bart")
    change(folder, lambda tensors: tensors.pop("final_logits_bias"))
    found = read_folder(folder)
    assert found.new_tensors == ("heads.language.bias",)
    assert not found.network.state_dict()["heads.language.bias"].any()


# what goes through


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_labels_are_read_and_written(tmp_path: Path, kind: str) -> None:
    labels = ("négatif", "neutral", "positive")
    folder = written(tmp_path / "model", "tiny-bert", {kind: 3}, labels=labels)
    assert read_folder(folder).labels == labels
    config = transformers.AutoConfig.from_pretrained(folder)
    assert config.id2label == dict(enumerate(labels))
    assert config.label2id == {label: number for number, label in enumerate(labels)}


def test_unnamed_labels_are_counted(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 4})
    assert transformers.AutoModelForSequenceClassification.from_pretrained(folder).config.num_labels == 4
    assert read_folder(folder).labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
    assert "id2label" not in json.loads((written(tmp_path / "two", "tiny-bert") / "config.json").read_text())


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.mark.parametrize("stored", DTYPES)
@pytest.mark.parametrize("read", DTYPES)
def test_number_formats(tmp_path: Path, stored: str, read: str) -> None:
    checkpoint = made("tiny-bert", {"masked": 0})
    values = {name: tensor.to(DTYPES[stored]) for name, tensor in checkpoint.network.state_dict().items()}
    checkpoint.network.to(DTYPES[stored])
    write_folder(tmp_path / "model", checkpoint)
    found = read_folder(tmp_path / "model", dtype=DTYPES[read])
    for name, tensor in found.network.state_dict().items():
        assert tensor.dtype == DTYPES[read]
        assert torch.equal(tensor, values[name].to(DTYPES[read]))
    write_folder(tmp_path / "again", found)
    assert json.loads((tmp_path / "again" / "config.json").read_text())["dtype"] == read
    assert {tensor.dtype for tensor in load_file(tmp_path / "again" / WEIGHTS).values()} == {DTYPES[read]}
    assert transformers.AutoModel.from_pretrained(tmp_path / "again", dtype="auto").dtype == DTYPES[read]


def test_a_format_that_holds_no_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read as torch\.int8"):
        read_folder(written(tmp_path / "model", "tiny-bert"), dtype=torch.int8)


def test_settings_that_are_not_known_survive(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    mine = {"my_own": {"deep": [1, 2]}, "finetuning_task": "sst2", "torch_dtype": "float32", "layer_norm_eps": 1e-7}
    configure(folder, **mine)
    write_folder(tmp_path / "again", read_folder(folder))
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert {key: config.get(key) for key in mine} == mine | {"torch_dtype": None}
    assert config["dtype"] == "float32"


def test_settings_for_generating_are_kept_or_made(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-gpt2")
    file = "generation_config.json"
    assert json.loads((folder / file).read_text())["eos_token_id"] == 99
    assert transformers.GenerationConfig.from_pretrained(folder).eos_token_id == 99
    (folder / file).write_text('{"eos_token_id": 7, "top_p": 0.5}')
    (folder / "sentence_bert_config.json").write_text("{}")
    write_folder(tmp_path / "again", read_folder(folder))
    assert json.loads((tmp_path / "again" / file).read_text()) == {"eos_token_id": 7, "top_p": 0.5}
    (folder / file).unlink()
    write_folder(tmp_path / "made", read_folder(folder))
    assert json.loads((tmp_path / "made" / file).read_text())["eos_token_id"] == 99
    assert not (written(tmp_path / "bert", "tiny-bert") / file).exists()


# sentence-transformers


def sentences(folder: Path, pooling: object, *, modules: object = None) -> Path:
    """The folder as sentence-transformers leaves it."""
    names = ["Transformer", "Pooling", "Normalize"] if modules is None else modules
    if isinstance(names, list):
        paths = ["", *(f"{i}_{name}" for i, name in enumerate(names[1:], start=1))]
        stem = "sentence_transformers.models."
        names = [
            {"idx": i, "name": str(i), "path": p, "type": stem + str(n)}
            for i, (n, p) in enumerate(zip(names, paths, strict=True))
        ]
    (folder / "modules.json").write_text(json.dumps(names))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def flags(mode: str) -> dict[str, object]:
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    sizes: dict[str, object] = {"word_embedding_dimension": 32, "include_prompt": True}
    return sizes | {f"pooling_mode_{m}": m == mode for m in modes}


@pytest.mark.parametrize(
    ("pooling", "ours"),
    [
        (flags("mean_tokens"), "mean"),
        (flags("cls_token"), "first"),
        (flags("max_tokens"), "max"),
        ({"pooling_mode": "mean", "include_prompt": True}, "mean"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": "max"}, "max"),
    ],
)
def test_pooling_is_read_and_written_back(tmp_path: Path, pooling: dict[str, object], ours: str) -> None:
    folder = sentences(written(tmp_path / "model", "tiny-bert"), pooling)
    found = read_folder(folder)
    assert found.pooling == ours
    write_folder(tmp_path / "again", found)
    for name in ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json"):
        assert json.loads((tmp_path / "again" / name).read_text()) == json.loads((folder / name).read_text())
    assert read_folder(tmp_path / "again").pooling == ours
    assert read_folder(written(tmp_path / "plain", "tiny-bert")).pooling is None


@pytest.mark.parametrize(
    ("pooling", "modules", "says"),
    [
        (
            flags("mean_sqrt_len_tokens"),
            None,
            "the pooling mean_sqrt_len_tokens is not known; known are cls, mean and max",
        ),
        (flags("none of them"), None, r"the pooling of modules\.json is not known"),
        ({"pooling_mode": "lasttoken"}, None, "the pooling lasttoken is not known"),
        ([], None, "holds a list, expected a JSON object"),
        ({}, {"a": 1}, r"modules\.json is not a list of modules"),
        ({}, 5, r"modules\.json is not a list of modules"),
        (flags("mean_tokens"), ["Transformer", "Pooling", "Dense"], "has a Dense, which would change the vectors"),
        ({}, "../..", r"modules\.json is not a list of modules"),
    ],
)
def test_pooling_that_is_not_known_is_refused(tmp_path: Path, pooling: object, modules: object, says: str) -> None:
    folder = sentences(written(tmp_path / "model", "tiny-bert"), pooling, modules=modules)
    with pytest.raises(FolderError, match=says):
        read_folder(folder)


def test_a_module_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    for path in ("../elsewhere", str(tmp_path)):
        (folder / "modules.json").write_text(json.dumps([{"path": path, "type": "models.Pooling"}]))
        with pytest.raises(FolderError, match="leads out of the folder"):
            read_folder(folder)


# what a damaged config.json may ask for, and files that are none


@pytest.mark.parametrize(
    ("family", "setting", "value"),
    [
        ("albert", "num_hidden_layers", 10**9),
        ("marian", "max_position_embeddings", 10**9),
        ("transformer", "max_position_embeddings", 10**9),
        ("bert", "hidden_size", 10**9),
        ("llama", "num_attention_heads", 10**9),
        ("t5", "num_layers", 10**9),
    ],
)
def test_sizes_are_refused_before_they_are_allocated(tmp_path: Path, family: str, setting: str, value: int) -> None:
    write_folder(tmp_path / "model", from_preset(f"tiny-{family}"))
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {setting: value}))
    with pytest.raises(FolderError, match="expected at most"):
        read_folder(tmp_path / "model")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "generation_config.json", "run.json"])
@pytest.mark.parametrize("kind", ["pipe", "sparse", "device"])
def test_only_regular_files_are_read(tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "model"
    write_folder(folder, from_preset("tiny-bert"))
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "sparse":
        (folder / name).touch()
        os.truncate(folder / name, 3 << 30)
    else:
        (folder / name).symlink_to("/dev/zero")
    with pytest.raises(FolderError, match=name):
        _ = regard.load(folder).task
