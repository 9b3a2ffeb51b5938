"""Skip-gram and CBOW: gradients and steps against plain loops, and what they learn."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from regard.errors import InputError
from regard.progress import Progress
from regard.word_vectors import negative_sampling as negative
from regard.word_vectors.negative_sampling import (
    AdaGradTable,
    CenterBlocks,
    NegativeSampling,
    NegativeSamplingSettings,
    band,
    cbow_gradients,
    skipgram_gradients,
)

WORDS, WIDTH = 7, 3


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.fixture
def tables() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    return tuple(random.normal(size=(WORDS, WIDTH)).astype(np.float32) for _ in range(2))  # type: ignore[return-value]  # two


def some_blocks(window: int = 2, length: int = 4, rows: int = 3) -> CenterBlocks:
    random = np.random.default_rng(1)
    contexts = random.integers(0, WORDS, (rows, length + 2 * window))
    lines = np.sort(random.integers(0, 3, contexts.shape), axis=1)
    same = lines[:, window:-window, None] == lines[:, None]
    weights = (band(window) * same).astype(np.float32)
    return CenterBlocks(contexts[:, window:-window], contexts, weights, random.integers(0, WORDS, (rows, 5)))


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "planted" not in request.node.name:
        monkeypatch.setattr(negative, "LENGTH", 4)


def test_band_weighs_near_words_most() -> None:
    result = band(2)
    assert result.shape == (4, 8)
    assert result[0].tolist() == [0.5, 1, 0, 1, 0.5, 0, 0, 0]
    assert result[3].tolist() == [0, 0, 0, 0.5, 1, 0, 1, 0.5]


def test_skipgram_gradients_are_the_plain_loops(tables: tuple[Any, Any]) -> None:
    inner, outer = tables
    blocks, negatives = some_blocks(), 3.0
    wanted_inner, wanted_outer = np.zeros((WORDS, WIDTH)), np.zeros((WORDS, WIDTH))
    for b in range(3):
        for i in range(4):
            x = int(blocks.centers_BL[b, i])
            for j in range(8):
                weight = float(blocks.weights_BLC[b, i, j])
                if weight == 0:
                    continue
                y = int(blocks.contexts_BC[b, j])
                slope = weight * (1 - sigma(float(inner[x] @ outer[y])))
                wanted_inner[x] += slope * outer[y]
                wanted_outer[y] += slope * inner[x]
                for n in blocks.negatives_BK[b]:  # all drawn words of the block, each for its share of `negatives`
                    slope = -weight * negatives / 5 * sigma(float(inner[x] @ outer[n]))
                    wanted_inner[x] += slope * outer[n]
                    wanted_outer[n] += slope * inner[x]
    result = skipgram_gradients(inner, outer, blocks, negatives)
    got_inner, got_outer = np.zeros((WORDS, WIDTH)), np.zeros((WORDS, WIDTH))
    np.add.at(got_inner, blocks.centers_BL, result.centers)
    np.add.at(got_outer, blocks.contexts_BC, result.contexts)
    np.add.at(got_outer, blocks.negatives_BK, result.negatives)
    np.testing.assert_allclose(got_inner, wanted_inner, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got_outer, wanted_outer, rtol=1e-4, atol=1e-5)


def test_cbow_gradients_are_the_plain_loops(tables: tuple[Any, Any]) -> None:
    inner, outer = tables
    blocks, negatives = some_blocks(), 3.0
    blocks.weights_BLC[0, 0] = 0  # a center without neighbors has no loss
    wanted_inner, wanted_outer = np.zeros((WORDS, WIDTH)), np.zeros((WORDS, WIDTH))
    for b in range(3):
        for i in range(4):
            weights = blocks.weights_BLC[b, i].astype(float)
            if weights.sum() == 0:
                continue
            shares = weights / weights.sum()
            h = sum(shares[j] * inner[blocks.contexts_BC[b, j]] for j in range(8))
            pull = np.zeros(WIDTH)
            y = int(blocks.centers_BL[b, i])
            slope = 1 - sigma(float(h @ outer[y]))
            pull += slope * outer[y]
            wanted_outer[y] += slope * h
            for n in blocks.negatives_BK[b]:
                slope = -negatives / 5 * sigma(float(h @ outer[n]))
                pull += slope * outer[n]
                wanted_outer[n] += slope * h
            for j in range(8):
                wanted_inner[blocks.contexts_BC[b, j]] += shares[j] * pull
    result = cbow_gradients(inner, outer, blocks, negatives)
    got_inner, got_outer = np.zeros((WORDS, WIDTH)), np.zeros((WORDS, WIDTH))
    np.add.at(got_inner, blocks.contexts_BC, result.contexts)
    np.add.at(got_outer, blocks.centers_BL, result.centers)
    np.add.at(got_outer, blocks.negatives_BK, result.negatives)
    np.testing.assert_allclose(got_inner, wanted_inner, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got_outer, wanted_outer, rtol=1e-4, atol=1e-5)


def test_climbing_is_adagrad_with_one_number_a_row(tables: tuple[Any, Any]) -> None:
    table = AdaGradTable.of(tables[0].copy())
    random = np.random.default_rng(2)
    rows, squares = tables[0].astype(float), np.full(WORDS, 1e-8)
    for _ in range(3):
        ids, gradients = random.integers(0, 4, 9), random.normal(size=(9, WIDTH)).astype(np.float32)
        table.ascend(ids, gradients, 0.1)
        for word in range(WORDS):
            total = sum((gradients[k].astype(float) for k in range(9) if ids[k] == word), np.zeros(WIDTH))
            if word in ids:
                squares[word] += (total**2).mean()
                rows[word] += 0.1 * total / math.sqrt(squares[word])
    np.testing.assert_allclose(table.rows_VD, rows, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(table.rows_VD[4:], tables[0][4:])


def test_batches_are_the_text_and_no_window_leaves_its_line() -> None:
    ids, bounds = np.array([0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3]), np.array([0, 3, 3, 4, 11])
    model = NegativeSampling(np.ones(WORDS, np.int64), NegativeSamplingSettings(window=2, subsample=0))
    results = []
    for blocks in model.batches(ids, bounds):
        for b in range(len(blocks.centers_BL)):
            for i in range(4):
                near = np.flatnonzero(blocks.weights_BLC[b, i])
                pairs = sorted((int(blocks.contexts_BC[b, j]), float(blocks.weights_BLC[b, i, j])) for j in near)
                results.append((int(blocks.centers_BL[b, i]), pairs))
    expected = []
    for first, last in pairwise(bounds):
        for i in range(first, last):
            others = [j for j in range(max(first, i - 2), min(last, i + 3)) if j != i]
            expected.append((int(ids[i]), sorted((int(ids[j]), 1.0 if abs(i - j) == 1 else 0.5) for j in others)))
    expected.append((0, []))  # the last block is filled up
    assert sorted(results) == sorted(expected)


def test_frequent_words_are_left_out_now_and_then() -> None:
    model = NegativeSampling(np.array([900, 90, 10]), NegativeSamplingSettings(subsample=0.01))
    rarity = 0.01 / np.array([0.9, 0.09, 0.01])
    np.testing.assert_allclose(model.keep_probability(), np.minimum(1, np.sqrt(rarity) + rarity))
    random = np.random.default_rng(0)
    ids = random.choice(3, 20_000, p=[0.9, 0.09, 0.01])
    remaining = sum(
        np.count_nonzero(blocks.weights_BLC.sum(-1)) for blocks in model.batches(ids, np.array([0, 20_000]))
    )
    assert remaining == pytest.approx(20_000 * float(model.keep_probability() @ [0.9, 0.09, 0.01]), rel=0.05)


def test_sampled_words_follow_their_counts() -> None:
    counts = np.array([1000, 100, 10])
    model = NegativeSampling(counts, NegativeSamplingSettings(window=1, subsample=0))
    sampled = np.concatenate([b.negatives_BK.ravel() for b in model.batches(np.zeros(4000, int), np.array([0, 4000]))])
    share = np.bincount(sampled, minlength=3) / len(sampled)
    np.testing.assert_allclose(share, counts**0.75 / (counts**0.75).sum(), atol=0.01)


def test_the_number_of_threads_changes_nothing() -> None:
    ids, bounds = np.random.default_rng(0).integers(0, 30, 3000), np.array([0, 1000, 3000])
    results = [
        NegativeSampling(
            np.full(30, 100), NegativeSamplingSettings(width=8, epochs=2, seed=seed, threads=threads)
        ).train(ids, bounds)
        for seed, threads in ((0, 1), (0, 2), (0, 3), (1, 1))
    ]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    assert not np.array_equal(results[0], results[3])


def test_progress_ends_at_the_end() -> None:
    reports: list[Progress] = []
    ids, bounds = np.random.default_rng(0).integers(0, 5, 900), np.array([0, 900])
    NegativeSampling(np.full(5, 180), NegativeSamplingSettings(subsample=0, width=4, epochs=2)).train(
        ids, bounds, progress=reports.append
    )
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert reports[-1] == Progress("words", 1800, 1800)


@pytest.mark.parametrize(
    "options", [{"kind": "glove"}, {"width": 0}, {"window": 0}, {"epochs": 0}, {"lr": 0.0}, {"subsample": -1.0}]
)
def test_invalid_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        NegativeSamplingSettings(**options)


@pytest.mark.parametrize(("ids", "bounds"), [([0, 7], [0, 2]), ([0, -1], [0, 2]), ([], [0, 0]), ([0, 1], [0, 1])])
def test_invalid_texts_are_refused(ids: list[int], bounds: list[int]) -> None:
    model = NegativeSampling(np.ones(WORDS, np.int64), NegativeSamplingSettings())
    with pytest.raises(InputError):
        model.train(np.array(ids, int), np.array(bounds))


def test_too_few_words_are_reported() -> None:
    with pytest.raises(InputError, match="at least 2"):
        NegativeSampling(np.array([3]), NegativeSamplingSettings())


def planted(things: int, kinds: int, lines: int, seed: int = 0) -> tuple[Any, Any, int]:
    """Words thing × kind; a line is one of them, marks of its thing and marks of its kind, shuffled.

    Word t·kinds + k is the k-th form of thing t, so that (t, k) − (t, l) + (u, l) should be (u, k).
    """
    random = np.random.default_rng(seed)
    forms = things * kinds
    text = []
    for _ in range(lines):
        thing, kind = random.integers(things), random.integers(kinds)
        line = [
            thing * kinds + kind,
            *(forms + 4 * thing + random.integers(0, 4, 3)),
            *(forms + 4 * things + 4 * kind + random.integers(0, 4, 3)),
        ]
        text.append(random.permutation(line))
    words = forms + 4 * things + 4 * kinds
    return np.concatenate(text), np.arange(0, 7 * lines + 1, 7), words


def share_of_analogies(table: Any, things: int, kinds: int) -> float:
    unit = table[: things * kinds] / np.linalg.norm(table[: things * kinds], axis=1, keepdims=True)
    right = total = 0
    for t in range(things):
        for u in range(things):
            for k in range(kinds):
                for l in range(kinds):  # noqa: E741  # the other kind
                    if t != u and k != l:
                        a, b, c, d = t * kinds + l, t * kinds + k, u * kinds + l, u * kinds + k
                        scores = unit @ (unit[b] - unit[a] + unit[c])
                        scores[[a, b, c]] = -9
                        right, total = right + int(scores.argmax() == d), total + 1
    return right / total


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_planted_analogies_are_learned(kind: Any) -> None:
    ids, bounds, words = planted(8, 3, 6000)
    settings = NegativeSamplingSettings(kind=kind, width=24, window=6, epochs=6, subsample=0)
    table = NegativeSampling(np.bincount(ids, minlength=words), settings).train(ids, bounds)
    assert share_of_analogies(table, 8, 3) > 0.8
