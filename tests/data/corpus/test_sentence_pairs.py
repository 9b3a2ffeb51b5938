"""Pairs of sentences: half of them true, sampled with a seed, framed and truncated; blocks of tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus.sentence_pairs import Kind as PairKind
from regard.data.corpus.sentence_pairs import sample_pairs, token_blocks
from regard.errors import InputError


def near(result: float, share: float, count: float, *, errors: float = 3) -> bool:
    return abs(result - share) < errors * (share * (1 - share) / count) ** 0.5


def corpus(documents: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 30, documents)
    lengths = rng.integers(1, 60, counts.sum())
    return np.concatenate(([0], np.cumsum(lengths))), np.concatenate(([0], np.cumsum(counts)))


@pytest.mark.parametrize("kind", ["next", "order"])
def test_half_of_the_pairs_are_true_and_the_others_are_not(kind: PairKind) -> None:
    sentences, documents = corpus(10_000)
    result = sample_pairs(sentences, documents, max_tokens=128, kind=kind)
    assert near(float((result.labels == 0).mean()), 0.5, len(result))
    edges = sentences[documents]
    a, b = (np.searchsorted(edges, part[:, 0], side="right") for part in (result.first, result.second))
    true, false = result.labels == 0, result.labels == 1
    assert (a[true] == b[true]).all()
    assert (result.first[true, 1] == result.second[true, 0]).all(), "the second follows at once"
    if kind == "next":
        assert (a[false] != b[false]).all()
    else:
        assert (a[false] == b[false]).all()
        assert (result.first[false, 0] >= result.second[false, 1]).all()
    assert result.lengths.max() <= 128
    assert (np.diff(result.first) > 0).all()
    assert (np.diff(result.second) > 0).all()
    short = float((result.lengths < 100).mean())
    assert 0.02 < short < 0.35


def test_pairs_are_seeded_and_new_every_epoch() -> None:
    sentences, documents = corpus(200)
    kinds = {
        (seed, epoch): sample_pairs(sentences, documents, max_tokens=64, seed=seed, epoch=epoch)
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len({result.first.tobytes() + result.second.tobytes() for result in kinds.values()}) == 4
    again = sample_pairs(sentences, documents, max_tokens=64)
    assert (again.second == kinds[0, 0].second).all()


def test_every_sentence_of_a_longer_document_is_a_first_or_a_true_second() -> None:
    sentences, documents = np.arange(0, 1001), np.array([0, 1, 500, 1000])
    result = sample_pairs(sentences, documents, max_tokens=40, short=0.0, seed=3)
    rows = {
        int(token)
        for part in (result.first, result.second[result.labels == 0])
        for start, end in part
        for token in range(start, end)
    }
    assert len(set(range(1, 1000)) - rows) <= 2, "at most the last sentence of a document can stay alone"


def test_a_pair_is_framed_and_cut_from_the_longer_side() -> None:
    tokens = np.arange(1000, 1200, dtype=np.uint16)
    sentences, documents = np.array([0, 100, 110, 115, 118]), np.array([0, 2, 4])
    for seed in range(20):
        result = sample_pairs(sentences, documents, max_tokens=33, short=0.0, seed=seed)
        ids, segments = result.read(0, tokens, cls=1, sep=2)
        assert len(ids) == result.lengths[0] <= 33
        assert ids[0] == 1
        assert ids[-1] == 2
        first = int(np.flatnonzero(ids == 2)[0])
        assert segments.tolist() == [0] * (first + 1) + [1] * (len(ids) - first - 1)
        assert ids[first - 1] == 1099, "the first part keeps its end"
        assert ids[first + 1] in (1100, 1110, 1115), "the second its start"
        if result.labels[0] == 0:
            assert (first - 1, len(ids) - first - 2) == (20, 10)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(1, 17), st.booleans(), st.integers(0, 3))
def test_blocks_hold_every_token_once(sizes: list[int], length: int, across: bool, epoch: int) -> None:
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    result = token_blocks(bounds, length, across=across, epoch=epoch)
    assert [token for start, end in result for token in range(start, end)] == list(range(bounds[-1]))
    lengths = np.diff(result).ravel()
    assert ((lengths > 0) & (lengths <= length)).all()
    if across:
        assert (lengths[1:-1] == length).all()
    else:
        inner = bounds[(bounds > 0) & (bounds < bounds[-1])]
        assert set(inner.tolist()) <= set(result[:, 0].tolist())


def test_pairs_that_cannot_be_are_refused() -> None:
    one = np.arange(4), np.array([0, 1, 2, 3])
    with pytest.raises(InputError, match="no document has two sentences"):
        sample_pairs(*one, max_tokens=64)
    with pytest.raises(InputError, match="need at least two documents"):
        sample_pairs(np.arange(4), np.array([0, 3]), max_tokens=64)
    with pytest.raises(InputError, match="use at least 5"):
        sample_pairs(*one, max_tokens=4)
    with pytest.raises(InputError, match="Choose one of: next, order"):
        sample_pairs(*one, max_tokens=64, kind="previous")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 1"):
        token_blocks(np.array([0, 5]), 0)
