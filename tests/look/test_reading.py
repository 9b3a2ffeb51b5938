"""Tokens, parts and the queries and keys of every attention."""

from __future__ import annotations

from typing import Any

import pytest
from tests.look.models import KINDS, PAIR, TEXT, look_input, transformer

from regard.errors import InputError
from regard.look.heads import weight_map
from regard.look.reading import part_names, read_text
from regard.model import hooks as taps
from regard.model.recurrent.networks import RecurrentNetwork


@pytest.mark.parametrize("kind", ["encoder", "albert", "local", "gpt2", "llama"])
def test_weights_equal_those_of_the_reference(kind: str) -> None:
    model = KINDS[kind]()
    (part,) = read_text(model, look_input()).parts
    reference = model.attention(TEXT)
    assert [token.token for token in part.queries] == list(reference.tokens)
    for layer, weights_HTS in reference.items():
        assert (weight_map(part, layer) - weights_HTS).abs().max() < 1e-6


@pytest.mark.parametrize("kind", ["translator", "relative"])
def test_translations_have_three_parts(kind: str) -> None:
    model = KINDS[kind]()
    reading = read_text(model, look_input())
    assert [part.name for part in reading.parts] == ["cross", "encoder", "decoder"]
    assert set(part_names(model)) == {"cross", "encoder", "decoder"}
    for part in reading.parts:
        cross = part.name == "cross"
        stack = "encoder" if part.name == "encoder" else "decoder"
        weights = taps.attention(model.network, reading.batch, target=reading.target_batch, stack=stack, cross=cross)
        for layer, (expected,) in weights.items():
            assert (weight_map(part, layer + 1) - expected).abs().max() < 1e-6


def test_alignments_of_recurrent_networks() -> None:
    model = KINDS["gru"]()
    reading = read_text(model, look_input(target="warm and cold"))
    (part,) = reading.parts
    network = model.network
    assert isinstance(network, RecurrentNetwork)
    assert reading.target_batch is not None
    expected = network.alignment(reading.batch, reading.target_batch)[0].detach()
    assert (weight_map(part, 1)[0] - expected).abs().max() < 1e-6
    assert reading.written == "warm and cold"
    assert read_text(KINDS["plain gru"](), look_input()).parts == ()


def test_tokens_hold_the_characters_of_the_text() -> None:
    reading = read_text(KINDS["encoder"](), look_input(TEXT, PAIR))
    texts = (TEXT, PAIR)
    for token in reading.tokens:
        if token.sequence is not None:
            assert texts[token.sequence][token.start : token.end] == token.text
    assert {token.sequence for token in reading.tokens} == {0, 1, None}


def test_long_texts_are_shown_in_windows() -> None:
    from regard.config import PositionConfig

    model = transformer("tiny-bert", positions=PositionConfig(max_tokens=12))
    long = " ".join([TEXT] * 4)
    first = read_text(model, look_input(long))
    assert first.windows > 1
    assert len(first.tokens) == 12
    assert "windows" in first.notices[0]
    last = read_text(model, look_input(long, window=first.windows - 1))
    assert last.tokens[-2].end == len(long)
    with pytest.raises(InputError, match="window 99 does not exist"):
        read_text(model, look_input(long, window=99))
    with pytest.raises(InputError, match="one text alone"):
        read_text(model, look_input(long, long))


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-t5"])
def test_texts_of_more_than_1024_tokens_are_shown_in_windows_too(name: str) -> None:
    from regard.config import PositionConfig

    options: dict[str, Any] = {} if name == "tiny-t5" else {"positions": PositionConfig("alibi", max_tokens=None)}
    reading = read_text(transformer(name, **options), look_input("the soup was warm " * 400, target="warm"))
    assert reading.windows > 1
    assert 512 < len(reading.tokens) <= 1024


@pytest.mark.parametrize(("name", "known"), [("cross", "encoder"), ("nothing", "encoder")])
def test_a_part_that_does_not_exist(name: str, known: Any) -> None:
    with pytest.raises(InputError, match=f"It has: {known}"):
        read_text(KINDS["encoder"](), look_input()).part(name)
