"""The numbers in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from approvals import metrics as decisions
from statestore.clock import db_now
from workflows.metrics import gauges, runs
from workflows.metrics.counters import Counter, Gauge, Histogram

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

#: What each process counts for itself.
COUNTED: tuple[Counter | Histogram, ...] = (
    runs.STARTED,
    runs.ENDED,
    runs.STEPS,
    runs.CALLS,
    runs.CLAIMS_LOST,
    decisions.LATENCY,
    decisions.DECIDE,
    decisions.NOTICES,
)
#: What is read from the database, and is the same whichever web process is asked.
READ: tuple[Gauge, ...] = (*gauges.GAUGES, *decisions.GAUGES)


class Counted(Collector):
    """What this process has counted since it started; asks the database nothing."""

    def collect(self) -> Iterable[Metric]:
        for metric in COUNTED:
            yield _histogram(metric) if isinstance(metric, Histogram) else _counter(metric)


class Everything(Collector):
    """That, and what is true now by the database."""

    def collect(self) -> Iterable[Metric]:
        families = {gauge: GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels) for gauge in READ}
        moment = db_now()
        for gauge, labels, number in (*gauges.read(moment), *decisions.read(moment)):
            families[gauge].add_metric(labels, number)
        yield from Counted().collect()
        yield from families.values()


def text() -> bytes:
    """Everything, as `GET /metrics` answers it."""
    return generate_latest(registry_of(Everything()))


def registry_of(collector: Collector) -> CollectorRegistry:
    """A registry of its own: the library's common one may belong to another part of the same process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


def _counter(metric: Counter) -> Metric:
    family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, number in sorted(metric.numbers().items()):
        family.add_metric(labels, number)
    return family


def _histogram(metric: Histogram) -> Metric:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    names = [*map(floatToGoString, metric.bounds), "+Inf"]
    for labels, spread in sorted(metric.spreads().items()):
        so_far = [sum(spread.counts[: place + 1]) for place in range(len(names))]
        family.add_metric(labels, list(zip(names, so_far, strict=True)), spread.total)
    return family
