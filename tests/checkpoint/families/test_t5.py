"""Settings of T5, with plain and with gated feed-forward layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.t5 import T5, T5_GATED, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", T5.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**T5.defaults, **write(config)}) == config


def test_the_gated_variant_is_selected_by_settings_and_by_config_json() -> None:
    plain = transformer_config("tiny-t5")
    gated = replace(plain, activation="geglu-tanh")
    for config, expected in ((plain, T5), (gated, T5_GATED)):
        assert T5.for_config(config) is expected
        assert T5.for_json(write(config)) is expected
        assert read({**T5.defaults, **write(config)}) == config


def test_outputs_are_scaled_where_they_are_tied() -> None:
    assert read({**T5.defaults, "tie_word_embeddings": True}).output == "scaled"
    assert read({**T5.defaults, "tie_word_embeddings": False}).output == "plain"
    with pytest.raises(FolderError, match='feed_forward_proj "gated-gel" is not known'):
        read({**T5.defaults, "feed_forward_proj": "gated-gel"})
