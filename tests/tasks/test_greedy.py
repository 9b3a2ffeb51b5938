"""Greedy decoding with an encoder-decoder: against a plain loop, and the same in a batch as alone."""

from __future__ import annotations

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.tasks.greedy import DecodedSequence, greedy_decode

SOURCES = [[5, 6, 7], [8], [9, 10, 11, 12]]
START, END = 0, 1


def network(name: str) -> Transformer | RecurrentNetwork:
    made = from_preset(name, seed=3).network.eval()
    assert isinstance(made, Transformer | RecurrentNetwork)
    return made


@torch.no_grad()
def plain_loop(network: Transformer | RecurrentNetwork, source: list[int], limit: int) -> tuple[list[int], float]:
    """Decode without a cache: the whole target is read again for each token."""
    target, score = [START], 0.0
    for _ in range(limit):
        logits = network(Ragged.of([source]), Ragged.of([target])).logits
        assert logits is not None
        log_probs = logits[-1].log_softmax(-1)
        target.append(int(log_probs.argmax()))
        score += float(log_probs.max())
        if target[-1] == END:
            break
    return target[1:], score


@pytest.mark.parametrize("name", ["tiny-transformer", "tiny-gru-additive"])
def test_the_most_likely_token_is_taken_each_time(name: str) -> None:
    model = network(name)
    (decoded,) = greedy_decode(model, Ragged.of(SOURCES[:1]), start=START, end=END, max_new_tokens=[6])
    ids, score = plain_loop(model, SOURCES[0], 6)
    assert decoded.ended == (ids[-1] == END)
    assert list(decoded.ids) == (ids[:-1] if decoded.ended else ids)
    assert decoded.score == pytest.approx(score, abs=1e-4)


def test_decoding_ends_at_the_end_token() -> None:
    """With the most likely first token as the end token, nothing is left."""
    model = network("tiny-transformer")
    (first,), score = plain_loop(model, SOURCES[0], 1)
    (decoded,) = greedy_decode(model, Ragged.of(SOURCES[:1]), start=START, end=first, max_new_tokens=[6])
    assert (decoded.ids, decoded.ended) == ((), True)
    assert decoded.score == pytest.approx(score, abs=1e-4)


def test_each_source_has_its_own_limit() -> None:
    limits = [4, 9, 2]
    model = network("tiny-transformer")
    decoded = greedy_decode(model, Ragged.of(SOURCES), start=START, end=-1, max_new_tokens=limits)
    assert [len(one.ids) for one in decoded] == limits
    assert not any(one.ended for one in decoded)


@pytest.mark.parametrize("name", ["tiny-gru-additive", "tiny-lstm-feeding", "tiny-transformer"])
def test_a_source_alone_is_decoded_as_in_a_batch(name: str) -> None:
    model = network(name)
    batch, limits = Ragged.of(SOURCES), [4, 9, 2]
    together = greedy_decode(model, batch, start=START, end=END, max_new_tokens=limits)
    for row, expected in enumerate(together):
        (alone,) = greedy_decode(model, batch.select([row]), start=START, end=END, max_new_tokens=limits[row : row + 1])
        assert (alone.ids, alone.ended) == (expected.ids, expected.ended)
        assert alone.score == pytest.approx(expected.score, abs=1e-5)


@pytest.mark.parametrize(("why", "ids", "ended"), [("end", (4, 5), True), ("length", (4, 5, 6), False)])
def test_only_an_end_token_is_removed(why: str, ids: tuple[int, ...], ended: bool) -> None:
    assert DecodedSequence.of([4, 5, 6], -2.0, why=why) == DecodedSequence(ids, -2.0, ended)
