"""Settings of DistilBERT: BERT without segments."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.distilbert import DISTILBERT, read, write


@pytest.mark.parametrize("name", DISTILBERT.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**DISTILBERT.defaults, **write(config)}) == config


def test_there_are_no_segments_and_the_pooler_uses_relu() -> None:
    config = read(DISTILBERT.defaults)
    assert config.segments == 0
    assert config.pool.activation == "relu"
