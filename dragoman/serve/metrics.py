"""What the service tells Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from dragoman.serve.protocol import Code

ORIGIN = "origin"
"""A page of another site was turned away; the other codes are those of the protocol."""
_SECONDS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0)


class Metrics:
    """The figures of one service; several in one process do not meet."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def histogram(name: str, text: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
            return Histogram(name, text, buckets=buckets, registry=self._registry)

        self.streams = Gauge("dragoman_streams", "Talks going on.", registry=self._registry)
        self.listeners = Gauge(
            "dragoman_listeners", "Who follows a talk in a room.", registry=self._registry
        )
        self.led = Gauge(
            "dragoman_led",
            "Who came here for a room or a place in another process.",
            registry=self._registry,
        )
        self.lag = histogram(
            "dragoman_lag_seconds", "How far behind the speaker words are; files have none."
        )
        self.step = histogram("dragoman_step_seconds", "Work on one step of a batch.")
        self.wait = histogram("dragoman_wait_seconds", "From a chunk's arrival to its step.")
        self.batch = histogram("dragoman_batch_size", "Talks in a step.", (1, 2, 4, 8, 16, 32))
        self.tasks = Gauge(
            "dragoman_tasks", "Tasks of the event loop: two a talk.", registry=self._registry
        )
        self.late = Gauge(
            "dragoman_late_seconds", "How long sound waits, on average.", registry=self._registry
        )
        self.level = Gauge(
            "dragoman_level",
            "What is given up: 1 short steps, 2 beams, 3 new talks, 4 the last talk.",
            registry=self._registry,
        )
        self.refused = Counter(
            "dragoman_refused",
            "Connections refused or ended for a fault, by code.",
            ["code"],
            registry=self._registry,
        )
        for code in (
            *Code,
            ORIGIN,
        ):  # from 0 on: of one that is there from 1 on nobody sees it grow
            self.refused.labels(code)
        self.talks = Counter(
            "dragoman_talks",
            "Talks and files that were begun here, or gone on with from elsewhere.",
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)

    def text(self) -> str:
        return generate_latest(self._registry).decode()


def merged(texts: Mapping[str, str]) -> str:
    """The figures of several replicas as one text, with a label that says whose each is."""
    registry = CollectorRegistry()
    registry.register(_Several(texts))
    return generate_latest(registry).decode()


class _Several(Collector):
    """Figures that were written down."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for who, text in self._texts.items():
            for one in text_string_to_metric_families(text):
                metric = found.setdefault(
                    one.name, Metric(one.name, one.documentation, one.type, one.unit)
                )
                for sample in one.samples:
                    labels = {**sample.labels, "replica": who}
                    metric.add_sample(sample.name, labels, sample.value)
        yield from found.values()
