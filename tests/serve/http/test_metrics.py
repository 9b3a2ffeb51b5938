from __future__ import annotations

from regard.serve.http.metrics import HISTOGRAMS, ServeMetrics


def test_measurements_become_histograms() -> None:
    metrics = ServeMetrics()
    for name in HISTOGRAMS:
        metrics.observe(name, 0.3)
    text = metrics.text().decode()
    assert 'regard_run_seconds_bucket{le="0.25"} 0.0' in text
    assert 'regard_run_seconds_bucket{le="0.5"} 1.0' in text
    assert ServeMetrics().text() != metrics.text()
