"""Batches are full, hold every sequence once, mix lengths, and go on from any position as if never stopped."""

from __future__ import annotations

import csv
import functools
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batching.batches import BatchPlan, BatchSettings, shuffled
from regard.errors import InputError

DATA = Path(__file__).parents[4] / "shared" / "data"


def log_normal(count: int, mean: float, *, spread: float = 1.0, longest: int = 512) -> np.ndarray:
    sampled = np.random.default_rng(0).normal(np.log(mean) - spread**2 / 2, spread, count)
    return np.clip(np.exp(sampled), 3, longest).astype(np.int64)


@functools.cache
def real(name: str) -> np.ndarray:
    """About the tokens of each text: 1.3 a word and two special ones, cut at 512."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if "tsv" in name else {"delimiter": ","}
        texts = [row[0] for row in csv.reader(lines, **dialect)][1:]
    return np.array([min(512, int(1.3 * len(text.split())) + 2) for text in texts])


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, BatchSettings]:
    tokens = draw(st.integers(1, 3000))
    longest = draw(st.integers(1, tokens))
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=draw(st.sampled_from([3, 30, 400]))))
    sequences = draw(st.none() | st.integers(1, 20))
    return np.array(lengths), BatchSettings(tokens, sequences, seed=draw(st.integers(0, 9)))


@settings(deadline=None, max_examples=60)
@given(cases(), st.integers(0, 3))
def test_every_sequence_is_in_one_batch(case: tuple[np.ndarray, BatchSettings], epoch: int) -> None:
    lengths, batch_settings = case
    batches = [batch.rows for batch in BatchPlan(lengths, batch_settings, epoch=epoch)]
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    for rows in batches:
        assert lengths[rows].sum() <= batch_settings.tokens
        assert 0 < len(rows) <= (batch_settings.sequences or len(lengths))
        assert (np.diff(lengths[rows]) <= 0).all(), "the longest first"


@settings(deadline=None, max_examples=50)
@given(cases(), st.data())
def test_batches_from_a_position_are_the_rest_of_the_epoch(
    case: tuple[np.ndarray, BatchSettings], data: st.DataObject
) -> None:
    lengths, batch_settings = case
    plan = BatchPlan(lengths, batch_settings, epoch=2)
    whole = [batch.rows.tolist() for batch in plan]
    step = data.draw(st.integers(0, plan.steps))
    later = BatchPlan(lengths.copy(), batch_settings, epoch=2, step=step)
    assert [batch.rows.tolist() for batch in later] == whole[step:]
    assert [(batch.epoch, batch.step) for batch in later] == [(2, number) for number in range(step, plan.steps)]


def test_every_epoch_and_every_seed_has_its_own_order() -> None:
    lengths = log_normal(2000, 30)
    orders = {
        tuple(BatchPlan(lengths, BatchSettings(1024, seed=seed), epoch=epoch).layout.rows)
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(orders) == 9
    again = [BatchPlan(lengths, BatchSettings(1024, seed=1)).layout.rows for _ in range(2)]
    assert (again[0] == again[1]).all()


def test_the_shuffle_is_the_same_in_every_version() -> None:
    assert shuffled(8, 3, 1).tolist() == [6, 3, 1, 5, 0, 2, 4, 7]


@pytest.mark.parametrize("tokens", [2048, 8192])
@pytest.mark.parametrize("name", ["imdb-like", "sst2-like", "imdb/train.csv.gz", "sst2/train.tsv.gz"])
def test_batches_are_full(name: str, tokens: int) -> None:
    if name == "imdb-like":
        lengths = log_normal(25_000, 290, spread=0.6)
    elif name == "sst2-like":
        lengths = log_normal(67_349, 14, spread=0.6, longest=66)
    else:
        lengths = real(name)
    plan = BatchPlan(lengths, BatchSettings(tokens))
    assert plan.fill >= 0.98


@pytest.mark.parametrize(("mean", "tokens"), [(14, 1024), (128, 1024), (128, 8192), (290, 1024)])
def test_lengths_are_mixed_and_nothing_drifts(mean: int, tokens: int) -> None:
    """No batch has one length only, and its mean length is as near to the whole's as a random draw's would be, or
    nearer. Over an epoch it has no trend: the slope of step against mean length, in standard errors, is a standard
    normal number; over 8 epochs their mean and mean square are within 3.5 standard errors of 0 and 1. And the
    place of a sequence in the epoch does not depend on its length: the same of their correlation over sequences.
    """
    lengths = log_normal(20_000, mean, spread=0.6)
    slopes, places = [], []
    for epoch in range(8):
        plan = BatchPlan(lengths, BatchSettings(tokens), epoch=epoch)
        rows = [lengths[batch.rows] for batch in plan]
        assert all(len(batch_lengths) == 1 or batch_lengths[0] > batch_lengths[-1] for batch_lengths in rows)
        means = np.array([batch_lengths.mean() for batch_lengths in rows])
        assert means.std() < 1.25 * lengths.std() / np.sqrt(len(lengths) / len(rows))
        slopes.append(_in_errors(np.arange(len(means)), means))
        step = np.repeat(np.arange(len(rows)), [len(batch_lengths) for batch_lengths in rows])
        places.append(_in_errors(step, np.concatenate(rows)))
    for result in (np.array(slopes), np.array(places)):
        assert abs(result.mean()) < 3.5 / np.sqrt(len(result))
    assert abs((np.array(slopes) ** 2).mean() - 1) < 3.5 * np.sqrt(2 / len(slopes))


def _in_errors(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.corrcoef(left, right)[0, 1] * np.sqrt(len(left)))


def test_lengths_that_cannot_fill_a_batch_are_still_packed() -> None:
    plan = BatchPlan(np.full(5000, 300), BatchSettings(512))
    assert plan.steps == 5000
    assert BatchPlan(np.full(999, 256), BatchSettings(512)).steps <= 503


def test_the_last_step_of_a_large_plan_is_read_directly() -> None:
    plan = BatchPlan(log_normal(100_000, 128), BatchSettings(16_384))
    assert plan.fill > 0.99
    assert len(plan.at(0, plan.steps - 1).rows(plan.steps - 1))


@pytest.mark.parametrize(
    ("lengths", "batch_settings", "message"),
    [
        (
            [5, 600, 7],
            {"tokens": 512},
            "has 600 tokens, but a batch is limited to 512. Raise tokens to at least 600",
        ),
        ([5, 0], {"tokens": 512}, "sequence 1 has 0 tokens"),
        ([], {"tokens": 512}, "there is no sequence"),
        ([[1, 2]], {"tokens": 512}, "one whole number per sequence"),
        ([1.5], {"tokens": 512}, "one whole number per sequence"),
        ([1], {"tokens": 0}, "tokens is 0"),
        ([1], {"tokens": 8, "sequences": 0}, "sequences is 0"),
    ],
)
def test_invalid_arguments_are_refused(lengths: list[int], batch_settings: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BatchPlan(lengths, BatchSettings(**batch_settings))
    with pytest.raises(InputError, match="not a position"):
        BatchPlan([1], BatchSettings(8)).at(-1)
    with pytest.raises(InputError, match="there is no step 1"):
        BatchPlan([1], BatchSettings(8)).rows(1)
