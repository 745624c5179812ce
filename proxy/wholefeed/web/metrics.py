"""GET /metrics: what has been counted and what goes on, for Prometheus.

Nothing of it names a feed, a URL, a host or a reader. What there is to tell is read at one moment
(`_Reading`), and put into words on a thread. Names follow the conventions of Prometheus; docs/operations.md
has a row for each.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from aiohttp import web
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
from wholefeed.core.model import State
from wholefeed.counts import NONE, Counts, Durations
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.service.memory import Usage
from wholefeed.store.base import Traffic
from wholefeed.store.store import Summary
from wholefeed.web.keys import CONFIG, CONNECTIONS, COUNTS, SERVICE, STORE

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


async def get_metrics(request: web.Request) -> web.StreamResponse:
    """GET /metrics: in the text format of Prometheus, or as OpenMetrics where that is asked for."""
    is_readable, summary = await _looked(request.app)
    reading = _read(request.app, summary, is_readable=is_readable)
    is_openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
    body, content_type = await asyncio.to_thread(_rendered, reading, is_openmetrics=is_openmetrics)
    return web.Response(body=body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept field names OpenMetrics, and prefers it to plain text where it names both."""
    weights = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for part in accept.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        if name in weights:
            given = [each.removeprefix("q=") for each in parameters if each.startswith("q=")]
            weights[name] = _weight(given[0]) if given else 1.0
    wanted, plain = weights.values()
    return wanted > 0 and wanted >= plain


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


async def _looked(app: web.Application) -> tuple[bool, Summary | None]:
    """Return whether the store can be read, and how large it is.

    None when it cannot say, or is being measured for the first time, which takes minutes where it is very
    large. The rest is worth having then above all.
    """
    upkeep, is_readable = app[STORE].upkeep, False
    try:
        await upkeep.require_answer()
        is_readable = True
        return True, await upkeep.summary()
    except OverloadedError:  # it has answered, if only that
        return is_readable, None
    except (StoreError, OSError):
        return False, None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Everything that `/metrics` shows, as it is at one moment."""

    counts: Counts
    memory: Usage
    memory_limit_bytes: int
    summary: Summary | None
    """None: the database could not say, or not in time."""
    is_readable: bool
    """Whether it could say anything."""
    store_limit_bytes: int
    """0: there is no limit."""
    is_writable: bool
    busy_connections: int
    requests: int
    """To publishers, under way."""
    waiting_requests: int
    refreshes: int
    openings: int
    walks: int
    waiting_walks: int
    traffic: Traffic
    """Between the store and its database."""
    workers: tuple[int, int]
    """How many there are, and how many of them are busy."""


def _read(app: web.Application, summary: Summary | None, *, is_readable: bool) -> _Reading:
    config, load = app[CONFIG], app[SERVICE].load
    return _Reading(
        counts=app[COUNTS].copy(),
        memory=load.memory,
        memory_limit_bytes=config.store.memory_bytes,
        summary=summary,
        is_readable=is_readable,
        store_limit_bytes=config.store.max_bytes,
        is_writable=app[STORE].is_writable,
        traffic=app[STORE].traffic,
        busy_connections=app[CONNECTIONS].busy_count,
        requests=load.requests,
        waiting_requests=load.waiting_requests,
        refreshes=load.refreshes,
        openings=load.openings,
        walks=load.walks,
        waiting_walks=load.waiting_walks,
        workers=load.workers,
    )


def _rendered(reading: _Reading, *, is_openmetrics: bool) -> tuple[bytes, str]:
    """Return the text of all metrics, and its media type. It reads files about the process.

    Each answer has a registry of its own, so that several applications in one process do not mix.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(reading))
    ProcessCollector(registry=registry)
    if is_openmetrics:
        return openmetrics.generate_latest(registry), _OPENMETRICS  # type: ignore[no-untyped-call]
    return generate_latest(registry), _TEXT


class _Metrics(Collector):
    """Gives the metrics of one reading to a registry."""

    def __init__(self, reading: _Reading) -> None:
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


def _now(reading: _Reading) -> Iterator[Metric]:
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


def _memory(reading: _Reading) -> Iterator[Metric]:
    memory = reading.memory
    yield _gauge("wholefeed_memory_feeds", "Feeds held in memory.", memory.feeds)
    yield _gauge("wholefeed_memory_bytes", "What is held of them.", memory.bytes)
    yield _gauge("wholefeed_memory_limit_bytes", "store.memory_bytes.", reading.memory_limit_bytes)
    yield _counter("wholefeed_memory_hits", "Looks into the memory that found the feed.", memory.hits)
    yield _counter("wholefeed_memory_misses", "Those that did not.", memory.misses)


def _database(reading: _Reading) -> Iterator[Metric]:
    of = reading.traffic
    yield _gauge("wholefeed_database_connections", "Connections to PostgreSQL.", of.connections)
    yield _gauge("wholefeed_database_connections_busy", "Those of them that do something.", of.busy)
    yield _gauge("wholefeed_database_waiting", "Transactions that wait for one.", of.waiting)
    yield _counter("wholefeed_database_repeated", "Transactions that were begun again.", of.repeated)
    yield _counter("wholefeed_database_lost", "Connections that broke off or were not to be had.", of.lost)
    yield _counter("wholefeed_notices_lost", "How often the one that listens broke off.", of.notices_lost)


def _store(reading: _Reading) -> Iterator[Metric]:
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
