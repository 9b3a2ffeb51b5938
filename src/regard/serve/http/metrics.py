"""Numbers for Prometheus: requests, and histograms of queue, tokenization, runs and batches."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
HISTOGRAMS = {
    "queue_seconds": ("Seconds that the oldest text of a batch waited.", SECONDS),
    "tokenize_seconds": ("Seconds to tokenize the texts of a request.", SECONDS),
    "run_seconds": ("Seconds to run a batch.", SECONDS),
    "batch_tokens": ("Tokens of a batch.", TOKENS),
}


class ServeMetrics:
    """The numbers of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "regard_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "regard_request_seconds", "Seconds from request to answer.", ["route"], buckets=SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self.in_progress = Gauge("regard_requests_in_progress", "Requests in progress.", registry=self.registry)
        self.queued = Gauge("regard_queue_tokens", "Tokens that wait, by model.", ["model"], registry=self.registry)
        self.restarts = Gauge("regard_worker_restarts", "Workers that died and were replaced.", registry=self.registry)
        self.ready = Gauge("regard_ready", "1 if the server is ready.", registry=self.registry)
        self._histograms = {
            name: Histogram(f"regard_{name}", text, buckets=buckets, registry=self.registry)
            for name, (text, buckets) in HISTOGRAMS.items()
        }

    def observe(self, name: str, value: float) -> None:
        """A measurement of a worker."""
        self._histograms[name].observe(value)

    def text(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self.registry)
