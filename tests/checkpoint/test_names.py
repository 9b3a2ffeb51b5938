"""Every tensor of every network has one name in its family's files, and comes back from there unchanged."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from regard.checkpoint.check_tensors import part_sizes, saved_tensors, tensor_mappings
from regard.checkpoint.families import FAMILIES, PRESETS, family_for
from regard.checkpoint.family import Family
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.names import LeadingAxis, NameTable, TensorMapping, Transposed, find_mapping, normalize_name
from regard.checkpoint.write_folder import export_tensors
from regard.config import Config
from regard.errors import FolderError
from regard.model.initialization import initialize
from regard.model.network import Network, build_network

TABLE: NameTable = {
    "stack.layers.{}.qkv": ("block.{}.q", "block.{}.k", "block.{}.v"),
    "stack.layers.{}.out": Transposed("block.{}.proj"),
    "head.output.weight": "words.weight",
    "head.output.bias": "words_bias",
    "head.bias": LeadingAxis("final_bias"),
}


def variants() -> list[tuple[str, Config, Family]]:
    """The settings of each tiny preset, and those of its family that change names: not tied, gated, grouped."""
    results = []
    for name, made in PRESETS.items():
        if name.startswith("tiny-"):
            changes: dict[str, dict[str, Any]] = {"": {}, " tied otherwise": {"tied": not made.config.tied}}
            if made.family == "t5":
                changes[" gated"] = {"activation": "geglu-tanh"}
            if made.family == "albert":
                changes[" groups"] = {"distinct_layers": 3}
            for what, change in changes.items():
                config = dataclasses.replace(made.config, **change)
                results.append((made.family + what, config, family_for(made.family, config)))
    return results


CASES = [
    pytest.param((config, family, kind), id=f"{name} {kind}")
    for name, config, family in variants()
    for kind in family.classes
]


@pytest.fixture(params=CASES, scope="module")
def network(request: pytest.FixtureRequest) -> tuple[Network, Family]:
    config, family, kind = request.param
    made = build_network(config, dict.fromkeys(family.classes[kind], 3))
    initialize(made, config, generator=torch.Generator().manual_seed(0))
    for tensor in saved_tensors(made).values():
        tensor.data.copy_(torch.randn(tensor.shape))
    return made, family


def test_every_tensor_has_a_place_of_its_own(network: tuple[Network, Family]) -> None:
    made, family = network
    places = tensor_mappings(made, family, made.heads, made.config)
    assert set(places) == set(saved_tensors(made))
    names = [name for place in places.values() for name in place.names]
    assert len(names) == len(set(names))
    assert not any("{}" in name for name in names)


def test_what_is_written_is_read_back(network: tuple[Network, Family]) -> None:
    made, family = network
    written = export_tensors(Checkpoint(family.name, made.config, made), family)
    short = {normalize_name(name, family.prefix): tensor for name, tensor in written.items()}
    assert len(short) == len(written)
    for ours, place in tensor_mappings(made, family, made.heads, made.config).items():
        tensor = saved_tensors(made)[ours]
        assert torch.equal(place.read(short.__getitem__), tensor)
        expected = place.shapes(tensor.shape, part_sizes(ours, made.config))
        assert [tuple(short[name].shape) for name in place.names] == expected


def test_every_class_there_has_its_heads_here() -> None:
    for family in FAMILIES.values():
        for kind, heads in family.classes.items():
            assert family.architecture(heads) == kind


def test_heads_without_a_class_are_refused() -> None:
    with pytest.raises(FolderError, match="gpt2 has no class with the heads sequence; it has GPT2Model: none"):
        FAMILIES["gpt2"].architecture(["sequence"])


@pytest.mark.parametrize(
    ("ours", "names", "how"),
    [
        ("stack.layers.0.qkv.weight", ("block.0.q.weight", "block.0.k.weight", "block.0.v.weight"), "same"),
        ("stack.layers.12.qkv.bias", ("block.12.q.bias", "block.12.k.bias", "block.12.v.bias"), "same"),
        ("stack.layers.3.out.weight", ("block.3.proj.weight",), "transposed"),
        ("head.output.weight", ("words.weight",), "same"),
        ("head.output.bias", ("words_bias",), "same"),
        ("head.bias", ("final_bias",), "leading axis"),
    ],
)
def test_a_place_follows_the_table(ours: str, names: tuple[str, ...], how: str) -> None:
    assert find_mapping(ours, TABLE) == TensorMapping(names, how)


@pytest.mark.parametrize("ours", ["stack.layers.0.norm.weight", "head.output", "stack.layers.qkv.weight", "qkv.weight"])
def test_what_the_table_lacks_has_no_place(ours: str) -> None:
    assert find_mapping(ours, TABLE) is None


def test_turned_and_row_are_stored_that_way() -> None:
    matrix, vector = torch.randn(2, 3), torch.randn(3)
    turned, row = TensorMapping(("a",), "transposed"), TensorMapping(("a",), "leading axis")
    assert torch.equal(turned.write(matrix, None)["a"], matrix.T)
    assert torch.equal(turned.read(lambda _: matrix.T), matrix)
    assert torch.equal(turned.write(vector, None)["a"], vector)
    assert row.write(vector, None)["a"].shape == (1, 3)
    assert torch.equal(row.read(lambda _: vector.unsqueeze(0)), vector)
    assert (turned.shapes((2, 3), None), turned.shapes((3,), None)) == ([(3, 2)], [(3,)])
    assert row.shapes((3,), None) == [(1, 3)]


@pytest.mark.parametrize(
    ("stored", "short"),
    [
        ("bert.embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"),
        ("embeddings.LayerNorm.beta", "embeddings.LayerNorm.bias"),
        ("module.bert.pooler.dense.weight", "pooler.dense.weight"),
        ("module.cls.predictions.bias", "cls.predictions.bias"),
        ("embeddings.gamma.weight", "embeddings.gamma.weight"),
        ("roberta.embeddings.bias", "roberta.embeddings.bias"),
    ],
)
def test_tidy_names(stored: str, short: str) -> None:
    assert normalize_name(stored, "bert.") == short
    assert normalize_name(short, "bert.") == short
