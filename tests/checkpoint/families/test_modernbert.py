"""Settings of ModernBERT: layers with global and with local attention."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.modernbert import MODERNBERT, global_every, layer_types, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", MODERNBERT.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**MODERNBERT.defaults, **write(config)}) == config


@pytest.mark.parametrize("every", [0, 1, 2, 3, 5])
def test_types_of_layers_say_which_are_global(every: int) -> None:
    types = layer_types(every, 5)
    assert [kind == "full_attention" for kind in types] == [bool(every) and layer % every == 0 for layer in range(5)]
    settings = {"layer_types": types, "num_hidden_layers": 5, "global_attn_every_n_layers": 3}
    assert global_every(settings) == every


def test_types_of_layers_without_a_period_are_refused() -> None:
    types = ["full_attention", "full_attention", "sliding_attention", "full_attention"]
    with pytest.raises(FolderError, match="layer_types"):
        global_every({"layer_types": types, "num_hidden_layers": 4, "global_attn_every_n_layers": 3})
