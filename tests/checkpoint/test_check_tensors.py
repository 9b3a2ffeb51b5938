"""Tensors of a file and of a network are compared by name and shape."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.checkpoint.folders import WEIGHTS, change, same, written
from tests.presets import transformer_config
from torch import Tensor

from regard.checkpoint.families import PRESETS, preset
from regard.checkpoint.folder import read_folder
from regard.checkpoint.names import TensorMapping
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError

# The tensors of a folder are checked against the network before any is read.


COPIES = {
    "tiny-bert": ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    "tiny-gpt2": ("lm_head.weight", "transformer.wte.weight"),
    "tiny-t5": ("lm_head.weight", "shared.weight"),
    "tiny-bart": ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    "tiny-modernbert": ("decoder.weight", "model.embeddings.tok_embeddings.weight"),
}


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
    message = str(caught.value)
    assert message.startswith(
        f"{folder}: the tensors do not fit a bert model as config.json describes it.\n2 missing:\n"
    )
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
        assert line in message.splitlines()


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


def test_a_tensor_under_two_names_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    change(folder, lambda tensors: tensors.update({"bert.pooler.dense.bias": torch.zeros(32)}))
    with pytest.raises(FolderError, match=r"bert\.pooler\.dense\.bias .*both name the tensor pooler\.dense\.bias"):
        read_folder(folder)


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
    config = dataclasses.replace(transformer_config("tiny-bart"), tied=False)
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


@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.integers(1, 4), st.booleans())
def test_parts_lie_one_after_the_other(sizes: list[int], width: int, vector: bool) -> None:
    ours = torch.randn(sum(sizes)) if vector else torch.randn(sum(sizes), width)
    place = TensorMapping(tuple(f"part{i}" for i in range(len(sizes))))
    written = place.write(ours, sizes)
    assert [len(part) for part in written.values()] == sizes
    assert torch.equal(written["part0"], ours[: sizes[0]])
    assert torch.equal(place.read(written.__getitem__), ours)


def test_parts_are_equal_where_no_sizes_are_given() -> None:
    ours = torch.arange(6.0)
    assert {name: part.tolist() for name, part in TensorMapping(("a", "b")).write(ours, None).items()} == {
        "a": [0.0, 1.0, 2.0],
        "b": [3.0, 4.0, 5.0],
    }


# Networks without storage, and tensors put into them.


def test_laying_out_makes_no_numbers() -> None:
    chosen = PRESETS["tiny-bert"]
    assert all(parameter.is_meta for parameter in build_on_meta(chosen.config, chosen.heads).parameters())
