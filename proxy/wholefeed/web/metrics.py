"""GET /metrics for Prometheus: counts since the start, and present state.

No label names a feed, URL, host or reader.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from aiohttp import web
from prometheus_client import ProcessCollector
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
from wholefeed.store.store import Summary
from wholefeed.web.keys import CONFIG, CONNECTIONS, COUNTS, SERVICE, STORE
from wholefeed.web.request import parse_weights

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


async def get_metrics(request: web.Request) -> web.StreamResponse:
    is_readable, summary = await _look_at_store(request.app)
    families = list(_families(request.app, summary, is_readable=is_readable))
    is_openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
    body, content_type = await asyncio.to_thread(_render, families, is_openmetrics=is_openmetrics)
    return web.Response(body=body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def wants_openmetrics(accept: str) -> bool:
    """Whether Accept prefers OpenMetrics to plain text."""
    weights = dict(parse_weights(accept))
    wanted = weights.get("application/openmetrics-text", 0.0)
    return wanted > 0 and wanted >= weights.get("text/plain", 0.0)


async def _look_at_store(app: web.Application) -> tuple[bool, Summary | None]:
    """Return whether the store is readable, and its size.

    The size is None if the store fails, or during a first measurement, which can take minutes: all other
    metrics appear nevertheless.
    """
    upkeep, is_readable = app[STORE].upkeep, False
    try:
        await upkeep.require_answer()
        is_readable = True
        return True, await upkeep.summary()
    except OverloadedError:  # too slow; readable if the first step succeeded
        return is_readable, None
    except (StoreError, OSError):
        return False, None


def _render(families: Sequence[Metric], *, is_openmetrics: bool) -> tuple[bytes, str]:
    """Return the metrics and their media type; reads process files."""
    everything = _Families([*families, *ProcessCollector(registry=None).collect()])
    if is_openmetrics:
        return openmetrics.generate_latest(everything), _OPENMETRICS  # type: ignore[no-untyped-call]
    return generate_latest(everything), _TEXT


class _Families(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


# The metrics


def _families(app: web.Application, summary: Summary | None, *, is_readable: bool) -> Iterator[Metric]:
    build = {(__version__, platform.python_version()): 1}
    yield _gauge("wholefeed_build_info", "The version that runs.", build, "version", "python")
    yield from _count_events(app[COUNTS])
    yield from _going_on(app)
    yield from _measure_store(app, summary, is_readable=is_readable)


def _count_events(counts: Counts) -> Iterator[Metric]:
    answers = {
        (route, state, str(status) if status else NONE): number
        for (route, state, status), number in counts.answers.items()
    }
    yield _counter("wholefeed_answers", "Answers to readers and others.", answers, "route", "state", "status")
    yield _histogram(
        "wholefeed_answer_duration_seconds",
        "Seconds from a request to the end of its answer.",
        counts.answer_seconds,
        "route",
    )
    yield _counter("wholefeed_answer_bytes", "Bytes of bodies that were sent whole.", counts.answer_bytes)
    yield _counter("wholefeed_answers_aborted", "Answers that were cut off.", counts.aborted)
    yield _counter("wholefeed_problems", "Error answers.", counts.problems, "reason")
    yield _counter(
        "wholefeed_feed_requests",
        "Requests for feeds, by the source of the answer.",
        counts.sources,
        "source",
    )
    yield _counter("wholefeed_feed_pages", "Requests for pages of feeds.", counts.pages, "page")
    yield _counter(
        "wholefeed_replay_requests", "Requests for feeds from their beginning, at a pace.", counts.replays
    )
    yield _counter(
        "wholefeed_documents_fetched", "Documents that publishers sent.", counts.documents, "outcome"
    )
    yield _counter(
        "wholefeed_documents_failed", "Documents that could not be fetched.", counts.failures, "reason"
    )
    yield _counter(
        "wholefeed_guesses_failed",
        "Guessed documents that do not exist.",
        counts.failed_guesses,
    )
    yield _counter(
        "wholefeed_unshared_requests",
        "Requests to publishers without the knowledge of the other replicas.",
        counts.unshared,
    )
    yield _counter(
        "wholefeed_look_ahead",
        "Documents fetched before a walk reached them, by outcome.",
        counts.look_ahead,
        "outcome",
    )
    yield _counter(
        "wholefeed_fetched_wire_bytes", "Bytes of response bodies, before decoding.", counts.wire_bytes
    )
    yield _counter("wholefeed_fetched_body_bytes", "Bytes of response bodies, decoded.", counts.body_bytes)
    yield _histogram(
        "wholefeed_fetch_duration_seconds",
        "Seconds of a fetch, with redirects and the pauses between attempts.",
        counts.fetch_seconds,
    )
    yield _counter("wholefeed_walks_started", "Walks that used the network.", counts.walks_begun)
    yield _counter("wholefeed_walks_ended", "Walks, by ending.", counts.walks, "ending")
    yield _histogram(
        "wholefeed_walk_duration_seconds", "Seconds of walks that have ended.", counts.walk_seconds
    )
    yield _counter(
        "wholefeed_publications",
        "Refreshes that updated the state of their feed.",
        counts.publications,
        "state",
        "reason",
    )
    yield _counter("wholefeed_refreshes_failed", "Refreshes that failed.", counts.failed_refreshes, "reason")
    yield _counter(
        "wholefeed_looks",
        "Searches of publishers' pages for listings, by outcome.",
        counts.looks,
        "outcome",
    )
    yield _counter("wholefeed_imports", "Imported documents.", counts.imports, "outcome")
    yield _counter("wholefeed_background_failures", "Failures of background tasks.", counts.troubles, "task")
    yield _counter(
        "wholefeed_feeds_evicted", "Feeds forgotten because the store was too large.", counts.evicted
    )


def _going_on(app: web.Application) -> Iterator[Metric]:
    load = app[SERVICE].load
    yield _gauge("wholefeed_connections_busy", "Connections being answered.", app[CONNECTIONS].busy_count)
    yield _gauge("wholefeed_publisher_requests", "Requests to publishers under way.", load.requests)
    yield _gauge(
        "wholefeed_publisher_requests_waiting",
        "Requests to publishers that wait for their turn.",
        load.waiting_requests,
    )
    yield _gauge("wholefeed_refreshes", "Feeds being refreshed.", load.refreshes)
    yield _gauge("wholefeed_openings", "Unknown URLs being opened.", load.openings)
    yield _gauge("wholefeed_walks", "Walks that use the network.", load.walks)
    yield _gauge("wholefeed_walks_waiting", "Walks that wait for their turn.", load.waiting_walks)
    yield _gauge("wholefeed_workers", "Worker processes for large documents.", load.workers)
    yield _gauge("wholefeed_workers_busy", "Worker processes that are busy.", load.busy_workers)
    memory = load.memory
    yield _gauge("wholefeed_memory_feeds", "Feeds in memory.", memory.feeds)
    yield _gauge("wholefeed_memory_bytes", "Bytes of the feeds in memory.", memory.bytes)
    yield _gauge("wholefeed_memory_limit_bytes", "store.memory_bytes.", app[CONFIG].store.memory_bytes)
    yield _counter("wholefeed_memory_hits", "Lookups that found the feed in memory.", memory.hits)
    yield _counter("wholefeed_memory_misses", "Lookups that did not find the feed in memory.", memory.misses)


def _measure_store(app: web.Application, summary: Summary | None, *, is_readable: bool) -> Iterator[Metric]:
    store, limit_bytes = app[STORE], app[CONFIG].store.max_bytes
    traffic = store.engine.traffic
    yield _gauge("wholefeed_database_connections", "Connections to PostgreSQL.", traffic.connections)
    yield _gauge(
        "wholefeed_database_connections_busy", "Connections to PostgreSQL that are busy.", traffic.busy
    )
    yield _gauge(
        "wholefeed_database_waiting",
        "Transactions that wait for a connection to PostgreSQL.",
        traffic.waiting,
    )
    yield _counter("wholefeed_database_repeated", "Transactions that were repeated.", traffic.repeated)
    yield _counter(
        "wholefeed_database_lost", "Connections to PostgreSQL that broke off or failed.", traffic.lost
    )
    yield _counter(
        "wholefeed_notices_lost", "Times that the connection for notices broke off.", traffic.notices_lost
    )
    yield _gauge("wholefeed_store_writable", "1 unless a write has failed.", int(store.is_writable))
    yield _gauge("wholefeed_store_limit_bytes", "store.max_bytes; 0: none.", limit_bytes)
    yield _gauge("wholefeed_store_readable", "1 when the database could be read.", int(is_readable))
    if summary is None:
        return
    feeds = {state: summary.feeds.get(state, (0, 0)) for state in State}
    known = {state: number for state, (number, _) in feeds.items()}
    stale = {state: number for state, (_, number) in feeds.items()}
    yield _gauge("wholefeed_feeds", "Known feeds.", known, "state")
    yield _gauge(
        "wholefeed_feeds_stale",
        "Known feeds that their publisher did not send.",
        stale,
        "state",
    )
    yield _gauge("wholefeed_store_used_bytes", "Bytes in use in the database.", summary.used_bytes)
    yield _gauge("wholefeed_store_file_bytes", "Bytes of the database's files.", summary.file_bytes)
    if summary.free_bytes is not None:
        yield _gauge("wholefeed_store_free_bytes", "Free bytes on the database's volume.", summary.free_bytes)


def _gauge(name: str, meaning: str, value: _Values, *labels: str) -> Metric:
    return _fill(GaugeMetricFamily(name, meaning, labels=labels), value)


def _counter(name: str, meaning: str, value: _Values, *labels: str) -> Metric:
    return _fill(CounterMetricFamily(name, meaning, labels=labels), value)


_Values = float | Mapping[Any, float]


def _fill(family: GaugeMetricFamily | CounterMetricFamily, values: _Values) -> Metric:
    if not isinstance(values, Mapping):
        family.add_metric([], values)
        return family
    for labels, value in values.items():
        family.add_metric([labels] if isinstance(labels, str) else labels, value)
    return family


def _histogram(name: str, meaning: str, value: Durations | Mapping[str, Durations], *labels: str) -> Metric:
    family = HistogramMetricFamily(name, meaning, labels=labels)
    for label, durations in value.items() if isinstance(value, Mapping) else [("", value)]:
        bounds = [*map(str, durations.bounds), "+Inf"]
        buckets = list(zip(bounds, accumulate(durations.numbers), strict=True))
        family.add_metric([label] if labels else [], buckets, durations.total_seconds)
    return family
