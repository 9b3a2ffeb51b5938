"""Settings of BART."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.bart import BART, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", BART.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**BART.defaults, **write(config)}) == config


def test_encoder_and_decoder_must_have_equal_heads() -> None:
    with pytest.raises(FolderError, match="decoder_attention_heads"):
        read({**BART.defaults, "decoder_attention_heads": 8})


def test_positions_start_at_two() -> None:
    assert read(BART.defaults).positions.offset == 2
