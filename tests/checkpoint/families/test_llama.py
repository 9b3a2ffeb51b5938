"""Settings of Llama."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.llama import LLAMA, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", LLAMA.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**LLAMA.defaults, **write(config)}) == config


def test_the_head_width_is_written_only_where_it_differs() -> None:
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    assert read({**LLAMA.defaults, **sizes, "head_dim": 16}).attention.head_width is None
    assert read({**LLAMA.defaults, **sizes, "head_dim": 8}).attention.head_width == 8


def test_biases_are_refused() -> None:
    with pytest.raises(FolderError, match="attention_bias"):
        read({**LLAMA.defaults, "attention_bias": True})
