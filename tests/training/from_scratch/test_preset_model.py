"""Networks of presets before their training."""

from __future__ import annotations

from regard.checkpoint.source import from_preset
from regard.training.from_scratch.preset_model import preset_config


def test_only_a_preset_is_trained_from_scratch() -> None:
    assert preset_config("tiny-gru") == from_preset("tiny-gru", weights=False).config
    assert preset_config(None) is None
