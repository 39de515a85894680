"""What is counted, for Prometheus to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4


class Gauges:
    """Counters of one server."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        named: dict[str, Any] = {"namespace": "mt", "registry": self._registry}
        self.requests = Counter("requests", "Requests answered.", ("route", "status"), **named)
        self.seconds = Histogram(
            "request_seconds",
            "From the head of a request to the end of the answer.",
            ("route",),
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            **named,
        )
        self.characters = Counter("characters", "Characters of text that were asked to be translated.", **named)
        self.sentences = Counter("sentences", "Sentences translated.", **named)
        self.batch_sentences = Histogram("batch_sentences", "Sentences of a batch.", buckets=(1, 2, 4, 8, 16, 32, 64, 128), **named)
        self.batch_seconds = Counter("batch_seconds", "Seconds that the model worked.", **named)
        Gauge("queue_requests", "Requests that are translated or wait for it.", **named).set_function(waiting)

    def batch(self, lines: int, seconds: float) -> None:
        """A batch was translated."""
        self.sentences.inc(lines)
        self.batch_sentences.observe(lines)
        self.batch_seconds.inc(seconds)

    def answered(self, route: str, status: int, seconds: float, characters: int) -> None:
        """A request was answered."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)
        self.characters.inc(characters)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)
