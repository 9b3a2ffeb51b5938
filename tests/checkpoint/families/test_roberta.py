"""Settings of RoBERTa: positions are counted from the padding id on."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.roberta import ROBERTA, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", ROBERTA.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**ROBERTA.defaults, **write(config)}) == config


def test_the_first_positions_are_not_used() -> None:
    config = read({**ROBERTA.defaults, "max_position_embeddings": 514, "pad_token_id": 1})
    assert (config.max_tokens, config.positions.offset) == (512, 2)
    with pytest.raises(FolderError, match="max_position_embeddings must be more than 2"):
        read({**ROBERTA.defaults, "max_position_embeddings": 2})
