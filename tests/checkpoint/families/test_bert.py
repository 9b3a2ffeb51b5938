"""Settings and names of BERT."""

from __future__ import annotations

import pytest
from tests.presets import transformer_config

from regard.checkpoint.families.bert import BERT, read, write
from regard.errors import FolderError


@pytest.mark.parametrize("name", BERT.presets)
def test_settings_survive_config_json(name: str) -> None:
    config = transformer_config(name)
    assert read({**BERT.defaults, **write(config)}) == config


def test_a_bert_decoder_is_refused() -> None:
    with pytest.raises(FolderError, match="is_decoder"):
        read({**BERT.defaults, "is_decoder": True})


def test_the_name_of_the_output_bias_depends_on_tying() -> None:
    assert BERT.head_names(["masked"], tied=True)["heads.masked.output.bias"] == "cls.predictions.bias"
    assert BERT.head_names(["masked"], tied=False)["heads.masked.output.bias"] == "cls.predictions.decoder.bias"
