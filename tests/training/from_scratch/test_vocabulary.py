"""Vocabularies of networks that are trained from scratch."""

from __future__ import annotations

import pytest
from tests.training.starting import TEXTS, start

from regard.checkpoint.source import from_preset
from regard.errors import InputError
from regard.tasks.translate import Translate
from regard.text.tokenizer import Tokenizer
from regard.training.from_scratch.vocabulary import vocabulary_of


def test_two_languages_have_a_vocabulary_each() -> None:
    model = start(Translate(), preset="tiny-transformer", targets=["ein guter Tag", "ein langer Tag"])
    target = model.tokenizer.target
    assert target is not None
    assert target.decode(target.encode("guter").ids) == "guter"
    assert (model.checkpoint.config.vocabulary, model.checkpoint.config.target_vocabulary) == (  # type: ignore[union-attr]
        model.tokenizer.size,
        target.size,
    )


def test_a_tokenizer_of_one_language_is_refused_for_two(small_tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="separate vocabularies were requested, but the tokenizer has none"):
        start(Translate(), preset="tiny-transformer", tokenizer=small_tokenizer, targets=TEXTS)


def test_a_byte_level_vocabulary_has_at_least_all_bytes() -> None:
    assert vocabulary_of("tiny-modernbert") == ("bpe", 1000, "bert")
    assert vocabulary_of("tiny-bert") == ("wordpiece", 100, None)


@pytest.mark.parametrize("name", ["lstm-characters", "gru-characters"])
def test_character_models_have_a_vocabulary_of_characters(name: str) -> None:
    assert vocabulary_of(name)[:2] == ("char", 1000)
    config = from_preset(name, weights=False).config
    assert (config.layers, config.width, config.kind) == (2, 512, "decoder")
