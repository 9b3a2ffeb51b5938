"""Settings of presets, with the type that tests need to change them."""

from regard.checkpoint.families import preset
from regard.config import ModelConfig


def transformer_config(name: str) -> ModelConfig:
    """The settings of a preset that is a Transformer."""
    config = preset(name).config
    assert isinstance(config, ModelConfig)
    return config
