"""A saved network is the network that was saved, whatever its settings: bit for bit, or it is refused."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.references import transformers

from regard.checkpoint.families import FAMILIES, PRESETS, family_for
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.config import (
    ACTIVATIONS,
    NORMS,
    POOLS,
    POSITIONS,
    SCORES,
    SELECTIONS,
    AttentionConfig,
    ModelConfig,
    PoolConfig,
    PositionConfig,
    RecurrentConfig,
    RotaryScaling,
)
from regard.errors import FolderError, InputError
from regard.ragged import Ragged

SOURCE, TARGET = Ragged.of([[5, 6, 7, 8, 9, 10, 11], [9, 3]]), Ragged.of([[1, 2, 3], [4, 5]])
SHAPES = [name for name in PRESETS if name.startswith("tiny-") and isinstance(PRESETS[name].config, ModelConfig)]
ATTENTION: dict[str, list[Any]] = {
    "score": list(SCORES),
    "select": list(SELECTIONS),
    "kv_heads": [None, 1, 2],
    "head_width": [None, 6],
    "window": [None, 2],
    "global_every": [0, 2],
    "dropout": [0.0, 0.3],
}
SCALINGS = [
    None,
    RotaryScaling("linear", 2.0),
    RotaryScaling("llama3", 8.0, original_length=64),
    RotaryScaling("yarn", 4.0, original_length=64, high=32.0, attention_factor=1.1),
]
PLACES: dict[str, list[Any]] = {
    "kind": list(POSITIONS),
    "max_tokens": [16, 64],
    "offset": [0, 3],
    "theta": [10000.0, 500.0],
    "local_theta": [None, 300.0],
    "scaling": SCALINGS,
    "buckets": [8, 32],
    "max_distance": [20, 128],
}
POOL: dict[str, list[Any]] = {
    "pooling": list(POOLS),
    "activation": ["tanh", "relu", "gelu"],
    "norm": [False, True],
    "bias": [True, False],
    "transform_tokens": [False, True],
}
NETWORK: dict[str, list[Any]] = {
    "activation": list(ACTIVATIONS),
    "norm": list(NORMS),
    "norm_first": [False, True],
    "eps": [1e-12, 1e-3],
    "bias": [True, False],
    "segments": [0, 2, 3],
    "embedding_width": [None, 16],
    "embedding_norm": [True, False],
    "embedding_scale": [False, True],
    "distinct_layers": [None, 1],
    "tied": [True, False],
    "output": ["plain", "scaled", "biased"],
    "dropout": [0.0, 0.2],
    "init_std": [None, 0.05],
}


@pytest.fixture(autouse=True)
def unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small files need not last through a loss of power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def changed(config: ModelConfig, **values: Any) -> ModelConfig:
    """The settings with some of them changed; those of parts are named part.name."""
    parts: dict[str, Any] = {"attention": config.attention, "positions": config.positions, "pool": config.pool}
    own = {name: value for name, value in values.items() if "." not in name}
    for name, value in values.items():
        part, _, field = name.partition(".")
        if field:
            parts[part] = replace(parts[part], **{field: value})
    if own.get("embedding_width") and own.get("tied", config.tied) and config.kind != "encoder":
        own["embedding_width"] = None  # tied words of a decoder are as wide as its states
    return replace(config, **parts, **own)


def made(name: str, heads: Mapping[str, int] | None = None, **values: Any) -> Checkpoint:
    config = PRESETS[name].config
    assert isinstance(config, ModelConfig)
    new = changed(config, **values)
    fields = {field: getattr(new, field) for field in config.__dataclass_fields__}
    return replace(from_preset(name, heads=heads, seed=3, **fields), untrained=False)


@torch.inference_mode()
def computed(checkpoint: Checkpoint) -> list[torch.Tensor]:
    network = checkpoint.network.eval()
    both = checkpoint.config.kind == "encoder-decoder"
    output = network(SOURCE, TARGET) if both else network(SOURCE)
    return [one for one in (output.hidden, output.logits, output.pooled, output.next_sentence) if one is not None]


def check_round_trip(checkpoint: Checkpoint, folder: Path) -> None:
    write_folder(folder, checkpoint)
    again = read_folder(folder)
    assert again.family == checkpoint.family
    assert again.config == checkpoint.config or json_equal(again, checkpoint)
    one, other = computed(checkpoint), computed(again)
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert torch.equal(left, right)


def json_equal(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether both are written as the same settings: values may be left out or said."""
    family = family_for(one.family, one.config)
    return not family.own_names and family.write(one.config) == family.write(other.config)


EVERY = {
    **{f"attention.{name}": values for name, values in ATTENTION.items()},
    **{f"positions.{name}": values for name, values in PLACES.items()},
    **{f"pool.{name}": values for name, values in POOL.items()},
    **NETWORK,
}


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-t5"])
def test_every_value_of_every_setting_is_saved(name: str, tmp_path: Path) -> None:
    """Each value alone, and with the kind of positions it belongs to."""
    count = 0
    for field, values in EVERY.items():
        for value in values:
            options = {field: value}
            if field in ("positions.theta", "positions.local_theta", "positions.scaling"):
                options |= {"positions.kind": "rotary", "attention.window": 2}
            if field in ("positions.buckets", "positions.max_distance"):
                options |= {"positions.kind": "relative"}
            if field == "positions.kind":
                options |= {"positions.max_tokens": 32}
            try:
                checkpoint = made(name, **options)
            except InputError:
                continue  # settings that do not go together are refused when they are made
            check_round_trip(checkpoint, tmp_path / f"model-{count}")
            count += 1
    assert count > 60


@pytest.mark.parametrize("seed", range(6))
def test_combinations_of_settings_are_saved(seed: int, tmp_path: Path) -> None:
    """Combinations drawn from all values of all settings, for every family in turn."""
    draw, count = random.Random(seed), 0
    for name in SHAPES:
        options = {field: draw.choice(values) for field, values in EVERY.items() if draw.random() < 0.4}
        heads = draw.choice([None, {"sequence": 3}, {"masked": 0}]) if PRESETS[name].config.kind == "encoder" else None
        try:
            checkpoint = made(name, heads, **options)
        except InputError:
            continue
        check_round_trip(checkpoint, tmp_path / f"model-{count}")
        count += 1
    assert count > 1


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_written_as_its_family(name: str) -> None:
    chosen = PRESETS[name]
    assert not family_for(chosen.family, chosen.config).own_names


@pytest.mark.parametrize("name", ["tiny-gru", "tiny-lstm-feeding", "tiny-elmo", "tiny-lstm-language"])
def test_recurrent_networks_are_saved_with_every_setting(name: str, tmp_path: Path) -> None:
    config = PRESETS[name].config
    assert isinstance(config, RecurrentConfig)
    idle = {"encoder-decoder": (), "decoder": ("bidirectional",), "encoder": ("bidirectional",)}[config.kind]
    for field, value in {"bidirectional": False, "dropout": 0.4, "layers": 2, "cell": "lstm"}.items():
        if field not in idle:  # what has no effect on a kind of network is not written
            changes: dict[str, Any] = {field: value}
            checkpoint = from_preset(name, **changes)
            write_folder(tmp_path / field, checkpoint)
            assert read_folder(tmp_path / field).config == checkpoint.config


HARD: dict[str, Any] = {"attention": AttentionConfig(4, select="hard", dropout=0.1)}


def test_transformers_refuses_what_it_cannot_compute(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_folder(folder, from_preset("tiny-bert", heads={"masked": 0}, **HARD))
    assert sorted(path.name for path in folder.glob("[a-z]*")) == ["config.json", "regard.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "regard"
    assert config["architectures"] == ["RegardBertForMaskedLM"]
    assert config["regard"]["family"] == "bert"
    assert config["regard"]["settings"]["attention"]["select"] == "hard"
    assert "hidden_size" not in config
    for opens in (transformers.AutoModel, transformers.BertModel, transformers.BertForMaskedLM):
        with pytest.raises((OSError, ValueError)):
            opens.from_pretrained(folder)


def test_transformers_opens_a_network_that_only_trains_otherwise(tmp_path: Path) -> None:
    checkpoint = replace(from_preset("tiny-t5", dropout=0.3, init_std=0.05), untrained=False)
    write_folder(tmp_path / "model", checkpoint)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["regard"] == {"settings": {"attention_dropout": 0.1, "init_std": 0.05}}
    assert read_folder(tmp_path / "model").config == checkpoint.config
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path / "model")
    assert theirs.config.d_model == 32


def test_a_network_of_a_folder_that_is_changed_is_saved_in_our_format(tmp_path: Path) -> None:
    write_folder(tmp_path / "plain", from_preset("tiny-bert", heads={"sequence": 3}))
    plain = read_folder(tmp_path / "plain")
    assert isinstance(plain.config, ModelConfig)
    config = changed(plain.config, **{"positions.kind": "sinusoidal"})
    other = replace(
        from_preset("tiny-bert", heads={"sequence": 3}, positions=config.positions), hf_config=plain.hf_config
    )
    check_round_trip(other, tmp_path / "other")
    written = json.loads((tmp_path / "other" / "config.json").read_text())
    assert "hidden_size" not in written
    assert len(written["id2label"]) == 3
    back = replace(plain, hf_config=written)
    write_folder(tmp_path / "back", back)
    again = json.loads((tmp_path / "back" / "config.json").read_text())
    assert (again["model_type"], again["hidden_size"]) == ("bert", 32)
    assert again["architectures"] == ["BertForSequenceClassification"]
    assert computed(read_folder(tmp_path / "back"))[0].equal(computed(plain)[0])


def test_our_format_takes_other_heads_and_shards(tmp_path: Path) -> None:
    checkpoint = from_preset("tiny-bert", heads={"masked": 0, "next": 2}, **HARD)
    write_folder(tmp_path / "model", checkpoint, shard_bytes=20_000)
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert "regard.safetensors.index.json" in names
    assert not any(name.startswith("model") for name in names)
    assert computed(read_folder(tmp_path / "model"))[0].equal(computed(checkpoint)[0])
    other = read_folder(tmp_path / "model", heads={"sequence": 4})
    assert {name.split(".")[1] for name in other.new_tensors} == {"sequence"}


def spoil(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["regard"] |= values
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"family": "burt"}, 'the family "burt" is not known. Did you mean "bert"'),
        ({"family": ["bert"]}, "is not known"),
        ({"heads": "masked"}, '"regard.heads" is .* expected a list'),
        ({"heads": ["masked", "tail"]}, '"regard.heads" is'),
        ({"heads": ["masked", [1]]}, '"regard.heads" is'),
        ({"settings": None}, '"regard.settings" is None, expected an object'),
        ({"settings": {}}, '"regard.settings" has no vocabulary, width'),
        ({"other": 1}, 'holds "other"'),
    ],
)
def test_damaged_fields_of_ours_are_named(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "model", from_preset("tiny-bert", heads={"masked": 0}, **HARD))
    spoil(tmp_path / "model", **values)
    with pytest.raises(FolderError, match=message):
        read_folder(tmp_path / "model")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("width",), "32"),
        (("width",), 32.0),
        (("bias",), 1),
        (("eps",), "small"),
        (("eps",), -1.0),
        (("attention",), None),
        (("attention", "heads"), True),
        (("attention", "heads"), None),
        (("attention", "select"), "soft-ish"),
        (("positions", "scaling"), {"kind": "linear"}),
        (("positions", "scaling"), [1]),
        (("dropout",), 10**400),
        (("colour",), "red"),
    ],
)
def test_wrong_settings_of_ours_are_named(path: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    write_folder(tmp_path / "model", from_preset("tiny-bert", heads={"masked": 0}, **HARD))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    place = config["regard"]["settings"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(FolderError, match=r"config\.json"):
        read_folder(tmp_path / "model")


def test_every_family_has_our_format(tmp_path: Path) -> None:
    names = {PRESETS[name].family: name for name in SHAPES}
    assert set(names) == set(FAMILIES) - {
        "recurrent",
        "recurrent-language",
        "elmo",
        "ngram",
        "static",
        "ngram-language",
    }
    for name in names.values():
        checkpoint = made(name, None, **{"attention.select": "hard"})
        assert family_for(checkpoint.family, checkpoint.config).own_names
        check_round_trip(checkpoint, tmp_path / name)


def test_positions_and_pooling_that_a_family_does_not_have(tmp_path: Path) -> None:
    checkpoint = from_preset(
        "tiny-bert",
        heads={"sequence": 2},
        positions=PositionConfig("alibi", max_tokens=None),
        pool=PoolConfig("mean", activation="relu", norm=True),
    )
    check_round_trip(checkpoint, tmp_path / "model")
