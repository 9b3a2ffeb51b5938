"""The load test of `benchmarks/`: how results are summed up, and the search for the highest rate."""

from __future__ import annotations

import dataclasses
import math

import pytest
from benchmarks.load_test import LoadResult, RequestResult, best_rate, percentile, search_rate, summarize


def server(rate: float) -> LoadResult:
    """A server that is fast up to 90 requests per second."""
    p99 = 20.0 if rate <= 90 else 900.0
    return LoadResult(rate, min(rate, 90), 5.0, 10.0, p99, 1000, {})


def test_a_summary() -> None:
    results = [RequestResult(number / 100, 0.01 * (number % 10 + 1), "200") for number in range(100)]
    results += [RequestResult(0.5, 0.1, "429"), RequestResult(0.6, 0.2, "no answer")]
    summary = summarize(results, rate=100, seconds=1)
    assert (summary.p50_ms, summary.p95_ms, summary.p99_ms) == pytest.approx((50, 100, 100))
    assert summary.requests == 102
    assert summary.errors == {"429": 1, "no answer": 1}
    assert not summary.holds(1000)
    assert summary.throughput == pytest.approx(100 / 1.09)
    assert percentile([], 0.5) == math.inf


def test_the_highest_rate_is_found() -> None:
    results = search_rate(server, goal_ms=100)
    best = best_rate(results, goal_ms=100)
    assert best is not None
    assert 80 <= best <= 90
    assert [one.rate for one in results] == sorted(one.rate for one in results)
    assert best_rate(search_rate(server, goal_ms=1), goal_ms=1) is None
    slow = search_rate(lambda rate: dataclasses.replace(server(rate * 50), rate=rate), goal_ms=100)
    assert best_rate(slow, goal_ms=100) == pytest.approx(1.8, rel=0.2)
