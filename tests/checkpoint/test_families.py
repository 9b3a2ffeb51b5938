"""A family is one file: a toy one, registered from outside, is created, saved, loaded, trained and documented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.checkpoint import families
from regard.checkpoint.families import FAMILIES, PRESETS, bert
from regard.checkpoint.family import Family, HFConfig, encoder_attention
from regard.config import ModelConfig

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


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    families.register(TOY)
    yield
    del FAMILIES["toy"]


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


def test_a_toy_family_is_trained_and_has_a_card(tmp_path: Path) -> None:
    rows = "".join(f"a good film {number},yes\na bad film {number},no\n" for number in range(20))
    (tmp_path / "films.csv").write_text(f"text,label\n{rows}")
    out = tmp_path / "run"
    regard.train(tmp_path / "films.csv", preset="toy-base", out=out, steps=2, device="cpu")
    model = regard.load(out, device="cpu")
    assert (model.family, model.task) == ("toy", "classify")
    assert model.predict(["a good film"])[0].json()["label"] in ("yes", "no")
    assert "toy" in (out / "README.md").read_text(encoding="utf-8")


def test_a_toy_family_is_known_by_its_presets_and_has_a_docs_row() -> None:
    assert (PRESETS["toy-large"].family, PRESETS["toy-large"].config.width) == ("toy", 64)
    assert TOY.docs_row() == "| `toy` | ToyModel, ToyForSequenceClassification (an example) | toy-base, toy-large |"


def test_the_table_of_the_docs_is_that_of_the_registry() -> None:
    _, _, table = DOCS.read_text(encoding="utf-8").partition("| family | classes | presets |\n|---|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    assert rows == [family.docs_row() for family in FAMILIES.values() if family is not TOY]
