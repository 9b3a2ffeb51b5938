"""Settings of ELECTRA: embeddings narrower than the network."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.electra import ELECTRA, read, write


@pytest.mark.parametrize("name", ELECTRA.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**ELECTRA.defaults, **write(config)}) == config


def test_embeddings_as_wide_as_the_network_have_no_projection() -> None:
    assert read({**ELECTRA.defaults, "embedding_size": 256}).embedding_width is None
    assert read({**ELECTRA.defaults, "embedding_size": 64}).embedding_width == 64
