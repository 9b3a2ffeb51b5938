"""Meters of language models."""

from __future__ import annotations

import math

import pytest

from regard.metrics.meter import (
    PerplexityMeter,
)


def test_language() -> None:
    meter = PerplexityMeter()
    for count in range(1, 60):
        meter.add(count * math.log(7 if count % 2 else 5), count, 2 * count, 3 * count)
    result = meter.scores()
    assert list(result) == ["perplexity", "nll", "word_perplexity", "bits_per_character"]
    assert result["word_perplexity"].value == pytest.approx(math.exp(result["nll"].value / 3))
    assert 5 < result["perplexity"].low < result["perplexity"].value < result["perplexity"].high < 7
    assert result["perplexity"].value == pytest.approx(math.exp(result["nll"].value))
    assert result["bits_per_character"].value == pytest.approx(result["nll"].value / 2 / math.log(2))
    assert not meter.higher_is_better
    meter.add(1e9, 1)
    assert meter.scores()["perplexity"].value == math.inf
