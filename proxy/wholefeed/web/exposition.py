"""The metrics as Prometheus reads them: names, meanings, labels.

    body, content_type = rendered(reading, is_openmetrics=False)

Each answer has a registry of its own, so that several applications in one process do not mix. Names follow
the conventions of Prometheus; docs/operations.md has a row for each.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from wholefeed import __version__
from wholefeed.core.terms import State
from wholefeed.counts import NONE, Counts, Durations
from wholefeed.web.reading import Reading

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def rendered(reading: Reading, *, is_openmetrics: bool) -> tuple[bytes, str]:
    """Return the text of all metrics, and its media type. It reads files about the process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Wholefeed(reading))
    ProcessCollector(registry=registry)
    if is_openmetrics:
        return openmetrics.generate_latest(registry), OPENMETRICS  # type: ignore[no-untyped-call]
    return generate_latest(registry), TEXT


class Wholefeed(Collector):
    """Gives the metrics of one reading to a registry."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        reading = self._reading
        labels = ["version", "python"]
        build = GaugeMetricFamily("wholefeed_build_info", "The version that runs.", labels=labels)
        build.add_metric([__version__, platform.python_version()], 1)
        yield build
        yield from _answers(reading.counts)
        yield from _documents(reading.counts)
        yield from _walks(reading.counts)
        yield from _background(reading.counts)
        yield from _now(reading)
        yield from _memory(reading)
        yield from _database(reading)
        yield from _store(reading)


def _answers(counts: Counts) -> Iterator[Metric]:
    answers = CounterMetricFamily(
        "wholefeed_answers", "Answers to readers and others.", labels=["route", "state", "status"]
    )
    for (route, state, status), number in counts.answers.items():
        answers.add_metric([route, state, str(status) if status else NONE], number)
    yield answers
    seconds = HistogramMetricFamily(
        "wholefeed_answer_duration_seconds", "From a request to the end of its answer.", labels=["route"]
    )
    for route, durations in counts.answer_seconds.items():
        _add_durations(seconds, [route], durations)
    yield seconds
    yield _counter("wholefeed_answer_bytes", "Of bodies that were sent whole.", counts.answer_bytes)
    yield _counter("wholefeed_answers_aborted", "Answers that were cut off.", counts.aborted)
    yield _counters("wholefeed_problems", "Error answers.", "reason", counts.problems)
    yield _counters(
        "wholefeed_feed_requests", "Requests for feeds, by what had to be asked.", "source", counts.sources
    )


def _documents(counts: Counts) -> Iterator[Metric]:
    yield _counters(
        "wholefeed_documents_fetched", "Documents that publishers gave.", "outcome", counts.documents
    )
    yield _counters(
        "wholefeed_documents_failed", "Documents that could not be had.", "reason", counts.failures
    )
    yield _counter(
        "wholefeed_guesses_failed", "Documents that were guessed and are not there.", counts.failed_guesses
    )
    yield _counter(
        "wholefeed_unshared_requests",
        "Requests to publishers that the other replicas did not know of.",
        counts.unshared,
    )
    yield _counters(
        "wholefeed_look_ahead",
        "Documents asked for before a walk came to them, by what came of it.",
        "outcome",
        counts.look_ahead,
    )
    yield _counter("wholefeed_fetched_wire_bytes", "Of bodies, as they came.", counts.wire_bytes)
    yield _counter("wholefeed_fetched_body_bytes", "Of bodies, decoded.", counts.body_bytes)
    seconds = HistogramMetricFamily(
        "wholefeed_fetch_duration_seconds", "Of a fetch: requests, redirects and pauses between tries."
    )
    _add_durations(seconds, [], counts.fetch_seconds)
    yield seconds


def _walks(counts: Counts) -> Iterator[Metric]:
    yield _counter("wholefeed_walks_started", "Walks that used the network.", counts.walks_begun)
    yield _counters("wholefeed_walks_ended", "Walks, by what ended them.", "ending", counts.walks)
    seconds = HistogramMetricFamily("wholefeed_walk_duration_seconds", "Of walks that have ended.")
    _add_durations(seconds, [], counts.walk_seconds)
    yield seconds
    published = CounterMetricFamily(
        "wholefeed_publications", "What refreshes have come to.", labels=["state", "reason"]
    )
    for labels, number in counts.publications.items():
        published.add_metric(labels, number)
    yield published
    yield _counters(
        "wholefeed_refreshes_failed", "Refreshes that brought nothing.", "reason", counts.failed_refreshes
    )


def _background(counts: Counts) -> Iterator[Metric]:
    yield _counters(
        "wholefeed_background_failures", "Failures of what goes on unasked.", "task", counts.troubles
    )
    yield _counter(
        "wholefeed_feeds_evicted", "Feeds forgotten because the store was too large.", counts.evicted
    )


def _now(reading: Reading) -> Iterator[Metric]:
    yield _gauge("wholefeed_connections_busy", "Connections being answered.", reading.busy_connections)
    yield _gauge("wholefeed_publisher_requests", "Requests to publishers under way.", reading.requests)
    yield _gauge(
        "wholefeed_publisher_requests_waiting",
        "Requests to publishers that wait for a place.",
        reading.waiting_requests,
    )
    yield _gauge("wholefeed_refreshes", "Feeds being refreshed.", reading.refreshes)
    yield _gauge("wholefeed_openings", "Unknown URLs being opened.", reading.openings)
    yield _gauge("wholefeed_walks", "Walks that use the network.", reading.walks)
    yield _gauge("wholefeed_walks_waiting", "Walks that wait for their turn.", reading.waiting_walks)
    processes, busy = reading.workers
    yield _gauge("wholefeed_workers", "Processes for large documents.", processes)
    yield _gauge("wholefeed_workers_busy", "Those of them that work.", busy)


def _memory(reading: Reading) -> Iterator[Metric]:
    memory = reading.memory
    yield _gauge("wholefeed_memory_feeds", "Feeds held in memory.", memory.feeds)
    yield _gauge("wholefeed_memory_bytes", "What is held of them.", memory.bytes)
    yield _gauge("wholefeed_memory_limit_bytes", "store.memory_bytes.", reading.memory_limit_bytes)
    yield _counter("wholefeed_memory_hits", "Looks into the memory that found the feed.", memory.hits)
    yield _counter("wholefeed_memory_misses", "Those that did not.", memory.misses)


def _database(reading: Reading) -> Iterator[Metric]:
    of = reading.traffic
    yield _gauge("wholefeed_database_connections", "Connections to PostgreSQL.", of.connections)
    yield _gauge("wholefeed_database_connections_busy", "Those of them that do something.", of.busy)
    yield _gauge("wholefeed_database_waiting", "Transactions that wait for one.", of.waiting)
    yield _counter("wholefeed_database_repeated", "Transactions that were begun again.", of.repeated)
    yield _counter("wholefeed_database_lost", "Connections that broke off or were not to be had.", of.lost)
    yield _counter("wholefeed_notices_lost", "How often the one that listens broke off.", of.notices_lost)


def _store(reading: Reading) -> Iterator[Metric]:
    yield _gauge("wholefeed_store_writable", "1 unless a write has failed.", int(reading.is_writable))
    yield _gauge("wholefeed_store_limit_bytes", "store.max_bytes; 0: none.", reading.store_limit_bytes)
    yield _gauge("wholefeed_store_readable", "1 when the database could be read.", int(reading.is_readable))
    summary = reading.summary
    if summary is None:
        return
    known = GaugeMetricFamily("wholefeed_feeds", "Known feeds.", labels=["state"])
    stale = GaugeMetricFamily(
        "wholefeed_feeds_stale", "Of them, those whose publisher could not be reached.", labels=["state"]
    )
    for state in State:
        number, stale_number = summary.feeds.get(state, (0, 0))
        known.add_metric([state], number)
        stale.add_metric([state], stale_number)
    yield known
    yield stale
    yield _gauge("wholefeed_store_used_bytes", "Of the database, in use.", summary.used_bytes)
    yield _gauge("wholefeed_store_file_bytes", "Of the database's files.", summary.file_bytes)
    if summary.free_bytes is not None:
        yield _gauge("wholefeed_store_free_bytes", "Free on the database's volume.", summary.free_bytes)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(name, meaning, value=value)


def _counters(name: str, meaning: str, label: str, numbers: Mapping[str, int]) -> Metric:
    found = CounterMetricFamily(name, meaning, labels=[label])
    for each, number in numbers.items():
        found.add_metric([each], number)
    return found


def _add_durations(family: HistogramMetricFamily, labels: list[str], durations: Durations) -> None:
    bounds = [*map(str, durations.bounds), "+Inf"]
    buckets = list(zip(bounds, accumulate(durations.numbers), strict=True))
    family.add_metric(labels, buckets=buckets, sum_value=durations.total_seconds)
