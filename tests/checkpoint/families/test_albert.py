"""Settings of ALBERT: narrow embeddings and layers that share weights."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.albert import ALBERT, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", ALBERT.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**ALBERT.defaults, **write(config)}) == config


def test_groups_of_layers_share_weights() -> None:
    config = read({**ALBERT.defaults, "num_hidden_layers": 6, "num_hidden_groups": 2, "embedding_size": 32})
    assert (config.layers, config.distinct_layers, config.embedding_width) == (6, 2, 32)


def test_several_layers_in_a_group_are_refused() -> None:
    with pytest.raises(FolderError, match="inner_group_num"):
        read({**ALBERT.defaults, "inner_group_num": 2})
