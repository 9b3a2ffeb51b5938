"""Embeddings of tokens, places and segments."""

from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config

from regard.config import PositionConfig


@torch.no_grad()
def test_without_segments_every_token_is_of_the_first(build, tokens):
    network, batch = build("tiny-bert"), tokens([5, 3])
    options = replace(batch, segments=torch.zeros(8, dtype=torch.int64))
    torch.testing.assert_close(network(batch).hidden, network(options).hidden)
    assert not torch.allclose(network(batch).hidden, network(replace(options, segments=options.segments + 1)).hidden)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
@torch.no_grad()
def test_places_and_scale_are_added_as_the_settings_say(build, tokens, kind):
    positions = PositionConfig(kind, max_tokens=16, offset=2)
    config = replace(transformer_config("tiny-bert"), positions=positions, embedding_scale=True, segments=0)
    embeddings, batch = build(config).encoder.embeddings, tokens([5, 3])
    rows = embeddings.table[batch.positions] if kind == "sinusoidal" else embeddings.places.weight[batch.positions + 2]
    expected = embeddings.norm(embeddings.tokens.weight[batch.ids] * 32**0.5 + rows)
    torch.testing.assert_close(embeddings(batch), expected)
