"""Settings of GPT-2."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.gpt2 import GPT2, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", GPT2.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**GPT2.defaults, **write(config)}) == config


def test_the_feedforward_layer_is_four_times_as_wide_unless_given() -> None:
    assert read({**GPT2.defaults, "n_embd": 96, "n_inner": None}).ffn_width == 384
    assert read({**GPT2.defaults, "n_embd": 96, "n_inner": 100}).ffn_width == 100


def test_scores_scaled_by_layer_are_refused() -> None:
    with pytest.raises(FolderError, match="scale_attn_by_inverse_layer_idx"):
        read({**GPT2.defaults, "scale_attn_by_inverse_layer_idx": True})
