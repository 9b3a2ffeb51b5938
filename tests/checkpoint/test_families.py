"""The registry of families, and their presets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.references import transformers

import regard
from regard.checkpoint import families
from regard.checkpoint.families import FAMILIES, PRESETS, bert, preset
from regard.checkpoint.family import Family, HFConfig, encoder_attention
from regard.config import ModelConfig
from regard.errors import InputError
from regard.model.network import build_network

# A family is one file: a toy one, registered from outside, is created, saved, loaded, trained and documented.


DOCS = Path(__file__).parents[2] / "docs" / "families.md"


def read(hf: HFConfig) -> ModelConfig:
    """From config.json to the settings of the network."""
    return ModelConfig(
        vocabulary=hf["vocab_size"],
        width=hf["hidden_size"],
        layers=hf["num_hidden_layers"],
        ffn_width=hf["intermediate_size"],
        attention=encoder_attention(hf),
        segments=2,
    )


def write(config: ModelConfig) -> dict[str, Any]:
    """From the settings of the network to config.json."""
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.attention.heads,
        "intermediate_size": config.ffn_width,
        "attention_probs_dropout_prob": config.attention.dropout,
    }


TOY = Family(
    name="toy",
    model_type="regard-toy",
    in_transformers=False,
    presets={"toy-base": bert.preset_config(300, 32, 2, 4), "toy-large": bert.preset_config(300, 64, 2, 4)},
    preset_heads={"pooled": 0},
    vocabulary_kind="wordpiece",
    docs="an example",
    classes={"ToyModel": ("pooled",), "ToyForSequenceClassification": ("sequence",)},
    defaults={"attention_probs_dropout_prob": 0.1},
    read=read,
    write=write,
    prefix="toy.",
    base={**bert.EMBEDDINGS, **bert.LAYERS, **bert.POOLER},
    heads={"sequence": {"heads.sequence.output": "classifier"}},
)


@pytest.fixture
def registered() -> Iterator[None]:
    families.register(TOY)
    yield
    del FAMILIES["toy"]


@pytest.mark.usefixtures("registered")
def test_a_toy_family_is_created_saved_and_loaded(tmp_path: Path) -> None:
    model = regard.create("toy-base", device="cpu")
    folder = model.save(tmp_path / "toy")
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("regard-toy", ["ToyModel"])
    with pytest.warns(regard.errors.UntrainedWarning):
        again = regard.load(folder, device="cpu")
    assert (again.family, again.config) == ("toy", model.config)
    ids = [[2, 7, 5, 3]]
    assert np.array_equal(again.outputs(ids)[0].hidden.numpy(), model.outputs(ids)[0].hidden.numpy())


@pytest.mark.usefixtures("registered")
def test_a_toy_family_is_trained_and_has_a_card(tmp_path: Path) -> None:
    rows = "".join(f"a good film {number},yes\na bad film {number},no\n" for number in range(20))
    (tmp_path / "films.csv").write_text(f"text,label\n{rows}")
    out = tmp_path / "run"
    regard.train(tmp_path / "films.csv", preset="toy-base", out=out, steps=2, device="cpu")
    model = regard.load(out, device="cpu")
    assert (model.family, model.task) == ("toy", "classify")
    assert model.predict(["a good film"])[0].json()["label"] in ("yes", "no")
    assert "toy" in (out / "README.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("registered")
def test_a_toy_family_is_known_by_its_presets_and_has_a_docs_row() -> None:
    assert (PRESETS["toy-large"].family, PRESETS["toy-large"].config.width) == ("toy", 64)
    assert TOY.docs_row() == "| `toy` | ToyModel, ToyForSequenceClassification (an example) | toy-base, toy-large |"


def test_the_table_of_the_docs_is_that_of_the_registry() -> None:
    _, _, table = DOCS.read_text(encoding="utf-8").partition("| family | classes | presets |\n|---|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    assert rows == [family.docs_row() for family in FAMILIES.values()]


PUBLISHED = {
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "bert-base-uncased": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-base-chinese": 102_267_648,
    "bert-base-multilingual-cased": 177_853_440,
    "bert-large-uncased": 335_141_888,
}


def both_sides(**settings):
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in settings.items()}


PEERS = {
    "roberta-base": ("Roberta", "Model", {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}),
    "distilbert-base": ("DistilBert", "Model", {}),
    "electra-small": ("Electra", "Model", {}),
    "albert-base": (
        "Albert",
        "Model",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_layers": 12},
    ),
    "modernbert-base": ("ModernBert", "Model", {}),
    "gpt2": ("GPT2", "LMHeadModel", {}),
    "t5-small": ("T5", "ForConditionalGeneration", {}),
    "bart-base": (
        "Bart",
        "Model",
        {"vocab_size": 50265, "d_model": 768, **both_sides(layers=6, ffn_dim=3072, attention_heads=12)},
    ),
    "marian": (
        "Marian",
        "MTModel",
        {"vocab_size": 58101, "pad_token_id": 58100, "d_model": 512}
        | both_sides(layers=6, ffn_dim=2048, attention_heads=8),
    ),
    "pegasus-large": (
        "Pegasus",
        "ForConditionalGeneration",
        {"vocab_size": 96103, "max_position_embeddings": 512} | both_sides(layers=16),
    ),
}

FIXED_POSITIONS = ("marian", "pegasus-large")


def parameters(name):
    made = preset(name)
    with torch.device("meta"):
        network = build_network(made.config, made.heads)
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_bert_are_those_published(name):
    assert parameters(name) == PUBLISHED[name]


@pytest.mark.parametrize("name", PEERS)
def test_parameters_are_as_many_as_in_transformers(name):
    family, kind, settings = PEERS[name]
    with torch.device("meta"):
        theirs = getattr(transformers, family + kind)(getattr(transformers, f"{family}Config")(**settings))
    fixed = [path for path, _ in theirs.named_parameters() if name in FIXED_POSITIONS and "embed_positions" in path]
    counted = sum(parameter.numel() for path, parameter in theirs.named_parameters() if path not in fixed)
    assert parameters(name) == counted


def test_the_transformer_of_2017_has_its_size():
    """Counted by hand: one shared table of words, and 6 layers on each side."""
    attention, feedforward, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    assert parameters("transformer-base") == 37000 * 512 + 6 * (encoder + decoder)


def test_every_family_has_a_tiny_preset():
    families = {made.family for made in PRESETS.values()}
    assert {made.family for name, made in PRESETS.items() if name.startswith("tiny-")} == families
    assert all(parameters(name) < 100_000 for name in PRESETS if name.startswith("tiny-"))


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(InputError, match=r'preset "bert-tinny" is not known: .* Did you mean "bert-tiny"'):
        preset("bert-tinny")
