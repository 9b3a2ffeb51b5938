"""What a model costs."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from regard.comparison.trainings.measure import median_latency, peak_memory, reset_peak_memory


def test_latency_is_the_median() -> None:
    waits = iter([0.0] * 3 + [0.002] * 29 + [0.05])
    latency = median_latency(lambda _: time.sleep(next(waits)), list(range(30)))
    assert 1.5 < latency < 20
    assert median_latency(lambda _: None, []) == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be reset on Linux only")
def test_the_peak_of_memory_starts_again() -> None:
    block = np.ones(40_000_000)  # 320 MB
    high = peak_memory()
    del block
    reset_peak_memory()
    low = peak_memory()
    assert high is not None
    assert low is not None
    assert high - low > 150_000_000
