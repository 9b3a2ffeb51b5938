"""Folders are read strictly: what does not fit is named, old habits are read quietly, and nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.checkpoint.folders import BATCH, WEIGHTS, change, configure, made, same, written
from tests.references import transformers

import regard
from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError, InputError

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


def test_a_file_keeps_the_heads_it_has_beside_those_of_its_class(tmp_path: Path) -> None:
    """Published BERT weights are called BertForMaskedLM and carry the pooler and the next-sentence head as well."""
    folder = written(tmp_path / "model", "tiny-bert", {"masked": 0, "next": 0, "pooled": 0})
    before = read_folder(folder)
    configure(folder, architectures=["BertForMaskedLM"])
    checkpoint = read_folder(folder)
    assert same(checkpoint, before)
    output = checkpoint.network(BATCH)
    assert (output.logits.shape, output.next_sentence.shape, output.pooled.shape) == ((5, 100), (2, 2), (2, 32))
    write_folder(tmp_path / "again", checkpoint)
    assert json.loads((tmp_path / "again" / "config.json").read_text())["architectures"] == ["BertForPreTraining"]


def test_a_base_without_its_pooler(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    change(folder, lambda tensors: [tensors.pop(f"pooler.dense.{leaf}") for leaf in ("weight", "bias")])
    assert read_folder(folder).network(BATCH).pooled is None


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"is not a folder\. Expected a model folder"):
        read_folder(tmp_path / "nothing")
    with pytest.raises(FolderError, match=r"has no config\.json"):
        read_folder(tmp_path)


# other heads


def test_a_head_that_is_there_is_kept(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 3}, labels=("a", "b", "c"))
    before, checkpoint = read_folder(folder), read_folder(folder, heads={"sequence": 3})
    assert same(before, checkpoint)
    assert (checkpoint.new_tensors, checkpoint.labels) == ((), ("a", "b", "c"))


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta", "tiny-distilbert", "tiny-electra", "tiny-modernbert"])
@pytest.mark.parametrize("there", [{}, {"masked": 0}, {"token": 3}])
def test_a_missing_head_is_randomly_initialized_and_reported(tmp_path: Path, name: str, there: dict[str, int]) -> None:
    folder = written(tmp_path / "model", name, there)
    before, checkpoint = read_folder(folder), read_folder(folder, heads={"sequence": 3})
    assert {"heads.sequence.output.weight", "heads.sequence.output.bias"} <= set(checkpoint.new_tensors)
    assert all(path.startswith("heads.") for path in checkpoint.new_tensors)
    left, right = before.network.state_dict(), checkpoint.network.state_dict()
    base = [path for path in left if path.startswith("encoder.")]
    assert base
    assert all(torch.equal(left[path], right[path]) for path in base)
    assert right["heads.sequence.output.weight"].shape == (3, 32)
    assert 0 < right["heads.sequence.output.weight"].std() < 0.1
    assert not any(tensor.is_meta for tensor in right.values())


def test_a_head_with_more_classes_is_randomly_initialized(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 3}, labels=("a", "b", "c"))
    checkpoint = read_folder(folder, heads={"sequence": 5})
    assert checkpoint.new_tensors == ("heads.sequence.output.weight", "heads.sequence.output.bias")
    assert checkpoint.labels is None
    write_folder(tmp_path / "again", checkpoint)
    again = read_folder(tmp_path / "again")
    assert same(checkpoint, again)
    assert again.labels == tuple(f"LABEL_{i}" for i in range(5))


def test_a_head_of_tokens_is_not_taken_for_one_of_texts(tmp_path: Path) -> None:
    """Both are called "classifier" and have the same shape."""
    folder = written(tmp_path / "model", "tiny-bert", {"token": 3})
    stored = load_file(folder / WEIGHTS)["classifier.weight"]
    checkpoint = read_folder(folder, heads={"sequence": 3})
    assert "heads.sequence.output.weight" in checkpoint.new_tensors
    assert not torch.equal(checkpoint.network.get_parameter("heads.sequence.output.weight"), stored)


def test_random_weights_follow_the_seed_in_the_order_of_the_network(tmp_path: Path) -> None:
    """And not the order of a set of names, which differs from one process to the next."""
    folder = written(tmp_path / "model", "tiny-roberta", {})
    torch.manual_seed(0)
    checkpoint = read_folder(folder, heads={"pooled": 0, "sequence": 2, "token": 3, "span": 0, "masked": 0})
    torch.manual_seed(0)
    weights = [path for path in checkpoint.new_tensors if path.endswith(".weight") and "norm" not in path]
    assert len(weights) == 5
    for path in weights:
        tensor = checkpoint.network.get_parameter(path)
        assert torch.equal(tensor, torch.empty(tensor.shape).normal_(0, 0.02))


def test_the_base_model_can_be_read_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"masked": 0, "next": 0})
    assert list(read_folder(folder, heads={}).network.heads) == []


def test_an_unknown_head_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'head "sequnce" is not known\. Did you mean "sequence"\?'):
        read_folder(written(tmp_path / "model", "tiny-bert"), heads={"sequnce": 2})


def test_a_class_that_is_not_known_gives_its_base(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 1})
    configure(folder, architectures=["BertForMultipleChoice"])
    assert "heads.sequence.output.weight" in read_folder(folder, heads={"sequence": 1}).new_tensors


def test_a_bias_that_may_be_absent_starts_at_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bart")
    change(folder, lambda tensors: tensors.pop("final_logits_bias"))
    checkpoint = read_folder(folder)
    assert checkpoint.new_tensors == ("heads.language.bias",)
    assert not checkpoint.network.state_dict()["heads.language.bias"].any()


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.mark.parametrize("stored", DTYPES)
@pytest.mark.parametrize("read", DTYPES)
def test_number_formats(tmp_path: Path, stored: str, read: str) -> None:
    checkpoint = made("tiny-bert", {"masked": 0})
    values = {name: tensor.to(DTYPES[stored]) for name, tensor in checkpoint.network.state_dict().items()}
    checkpoint.network.to(DTYPES[stored])
    write_folder(tmp_path / "model", checkpoint)
    loaded = read_folder(tmp_path / "model", dtype=DTYPES[read])
    for name, tensor in loaded.network.state_dict().items():
        assert tensor.dtype == DTYPES[read]
        assert torch.equal(tensor, values[name].to(DTYPES[read]))
    write_folder(tmp_path / "again", loaded)
    assert json.loads((tmp_path / "again" / "config.json").read_text())["dtype"] == read
    assert {tensor.dtype for tensor in load_file(tmp_path / "again" / WEIGHTS).values()} == {DTYPES[read]}
    assert transformers.AutoModel.from_pretrained(tmp_path / "again", dtype="auto").dtype == DTYPES[read]


def test_a_format_that_holds_no_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read as torch\.int8"):
        read_folder(written(tmp_path / "model", "tiny-bert"), dtype=torch.int8)


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
