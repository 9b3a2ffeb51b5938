"""Settings of a network trained from scratch: read from flags and Python, used, saved and loaded exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.checkpoint.source import from_preset
from regard.config import AttentionConfig, ModelConfig, RecurrentConfig
from regard.errors import InputError
from regard.training.from_scratch.model_settings import (
    AttentionSettings,
    ModelSettings,
    changed_settings,
    config_changes,
)
from regard.training.from_scratch.preset_model import preset_config
from regard.training.settings import Settings

TEXT = "the man fed the dog .\nthe woman fed the cat .\n\n" * 20


def test_settings_by_dotted_names_and_by_dicts() -> None:
    dotted = Settings.of({"model.layers": 2, "model.attention.score": "dot"})
    nested = Settings.of({"model": {"layers": 2, "attention": {"score": "dot"}}})
    both = Settings.of({"model": ModelSettings(layers=2), "model.attention": {"score": "dot"}})
    assert dotted == nested == both
    assert changed_settings(dotted.model) == {"layers": 2, "attention.score": "dot"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {"layer": 2}}, r'no setting "model\.layer"\. Did you mean "layers"'),
        ({"model": 3}, r"model is 3, expected some of layers, "),
        ({"model.attention.score": "dots"}, r'model\.attention\.score "dots" is not known\. Did you mean "dot"'),
        ({"model": {"layers": "two"}}, r"model\.layers is 'two', expected a whole number"),
        ({"model.attention.heads": 0}, r"model\.attention\.heads is 0, expected at least 1"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings.of(settings)


def test_changes_of_a_transformer() -> None:
    settings = ModelSettings(width=64, positions="rotary", attention=AttentionSettings(heads=2, select="hard"))
    config = preset_config("tiny-gpt2", settings)
    assert isinstance(config, ModelConfig)
    assert (config.width, config.ffn_width, config.positions.kind, config.layers) == (64, 256, "rotary", 2)
    assert config.attention == AttentionConfig(heads=2, select="hard", dropout=0.1)


def test_changes_of_a_recurrent_network() -> None:
    config = preset_config("tiny-gru", ModelSettings(width=16, cell="lstm", attention=AttentionSettings(score="dot")))
    assert isinstance(config, RecurrentConfig)
    assert (config.width, config.embedding_width, config.cell, config.score) == (16, 16, "lstm", "dot")


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("tiny-gpt2", ModelSettings(cell="gru"), r"model\.cell is for recurrent networks"),
        ("tiny-gru", ModelSettings(positions="none"), r"model\.positions was given, but tiny-gru has no such setting"),
        ("tiny-gpt2", ModelSettings(attention=AttentionSettings(heads=5)), r"heads=5: 5 heads do not divide"),
        ("tiny-gru", ModelSettings(attention=AttentionSettings(score="cosine")), "cosine"),
    ],
)
def test_what_does_not_fit_the_preset(preset: str, settings: ModelSettings, message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_changes(preset, settings)


def test_advice_names_flags_on_the_command_line() -> None:
    with pytest.raises(InputError) as caught:
        config_changes("tiny-gpt2", ModelSettings(attention=AttentionSettings(heads=5)))
    assert str(caught.value).endswith("or set attention.head_width.")
    assert caught.value.with_flags.startswith("--model.attention.heads 5: ")
    assert caught.value.with_flags.endswith("or set --model.attention.head-width.")


def test_a_trained_network_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.layers was given, but the network to start from is trained already"):
        regard.train("missing.csv", start="minilm", out=tmp_path / "run", model={"layers": 3})
    with pytest.raises(InputError, match=r"model\.layers was given, but static is a baseline"):
        regard.train("missing.csv", preset="static", out=tmp_path / "run", model={"layers": 3})


@pytest.mark.parametrize("score", ["dot", "scaled", "cosine", "bilinear", "additive"])
@pytest.mark.parametrize("positions", ["none", "rotary"])
def test_saved_and_loaded_exactly(score: str, positions: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    regard.pretrain(
        [tmp_path / "text.txt"],
        objective="causal",
        preset="tiny-gpt2",
        out=tmp_path / "run",
        steps=1,
        device="cpu",
        dev_fraction=0,
        model={"layers": 1, "positions": positions, "attention": {"score": score, "heads": 1, "select": "soft"}},
    )
    model = regard.load(tmp_path / "run", device="cpu")
    config = model.config
    assert isinstance(config, ModelConfig)
    assert (config.layers, config.positions.kind) == (1, positions)
    assert (config.attention.score, config.attention.heads) == (score, 1)
    again = regard.load(model.save(tmp_path / "copy"), device="cpu")
    assert again.config == config
    ids = [[5, 6, 7, 8]]
    assert torch.equal(model.outputs(ids)[0].hidden, again.outputs(ids)[0].hidden)


def test_create_takes_short_forms() -> None:
    config = regard.create("tiny-gpt2", positions="none", attention={"heads": 1, "score": "cosine"}).config
    assert isinstance(config, ModelConfig)
    assert (config.positions.kind, config.positions.max_tokens) == ("none", 128)
    assert (config.attention.heads, config.attention.score) == (1, "cosine")
    with pytest.raises(InputError, match=r'"head" is not a setting of attention\. Did you mean "heads"'):
        regard.create("tiny-gpt2", attention={"head": 1})


def test_only_a_preset_is_trained_from_scratch() -> None:
    assert preset_config("tiny-gru") == from_preset("tiny-gru", weights=False).config
    assert preset_config(None) is None
