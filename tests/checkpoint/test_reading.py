"""How a model reads texts, from the settings of its folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regard.checkpoint.reading import config_json, default_prefix, preprocessing_of
from regard.checkpoint.source import from_preset
from regard.errors import FolderError
from regard.text.learn import train_tokenizer_from_texts


def test_the_prefix_of_config_json_comes_before_those_of_tasks() -> None:
    german, french = ({"prefix": f"translate English to {language}: "} for language in ("German", "French"))
    tasks = {"summarization": {"prefix": "summarize: "}, "translation_en_to_de": german}
    assert default_prefix({}) == default_prefix({"task_specific_params": [1]}) == ""
    assert default_prefix({"task_specific_params": tasks}) == german["prefix"]
    assert default_prefix({"prefix": "own: ", "task_specific_params": tasks}) == "own: "
    with pytest.warns(UserWarning, match="this model has 2 translation tasks"):
        assert default_prefix({"task_specific_params": {**tasks, "translation_en_to_fr": french}}) == german["prefix"]


def test_the_start_token_of_a_decoder_must_be_in_the_vocabulary() -> None:
    tokenizer = train_tokenizer_from_texts(["a small text"] * 9, kind="char")
    checkpoint = from_preset("tiny-t5")
    assert config_json(checkpoint)["decoder_start_token_id"] == 0
    assert preprocessing_of(checkpoint, tokenizer, prefix="to German: ").prefix == "to German: "
    wrong = replace(checkpoint, hf_config={**config_json(checkpoint), "decoder_start_token_id": 100})
    with pytest.raises(FolderError, match="decoder_start_token_id is 100, expected an id from 0 to 99"):
        preprocessing_of(wrong, tokenizer)
