"""GET /metrics: what has been counted and what goes on, for Prometheus.

Nothing of it names a feed, a URL, a host or a reader. What is held by whom is read when it is asked for;
`wholefeed.web.exposition` puts it into words, in a thread, and is imported no sooner: its library takes a
tenth of a second and some megabytes that a server nobody watches can do without.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.store.upkeep import Summary
from wholefeed.web.keys import CONFIG, CONNECTIONS, COUNTS, SERVICE, STORE
from wholefeed.web.reading import Reading


async def get_metrics(request: web.Request) -> web.StreamResponse:
    """GET /metrics: in the text format of Prometheus, or as OpenMetrics where that is asked for."""
    is_readable, summary = await _looked(request.app)
    reading = _read(request.app, summary, is_readable=is_readable)
    is_openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
    body, content_type = await asyncio.to_thread(_rendered, reading, is_openmetrics)
    return web.Response(body=body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def wants_openmetrics(accept: str) -> bool:
    """Return whether an Accept field names OpenMetrics, and prefers it to plain text where it names both."""
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


def _read(app: web.Application, summary: Summary | None, *, is_readable: bool) -> Reading:
    """Return everything as it is at this moment."""
    config, load = app[CONFIG], app[SERVICE].load
    return Reading(
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


def _rendered(reading: Reading, is_openmetrics: bool) -> tuple[bytes, str]:
    from wholefeed.web.exposition import rendered  # noqa: PLC0415 - late: see above

    return rendered(reading, is_openmetrics=is_openmetrics)
