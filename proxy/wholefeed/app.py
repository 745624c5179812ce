"""The only place where the parts meet: `serve`, the application, the service without a server."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

from aiohttp import web

from wholefeed import __version__
from wholefeed.config.tables import Config
from wholefeed.counts import Counts
from wholefeed.errors import ConfigError
from wholefeed.fetch.base import site_of
from wholefeed.fetch.budget import MemoryBudget
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.guard import OwnAddresses
from wholefeed.fetch.politeness import HostGate
from wholefeed.fetch.publishers import Publishers
from wholefeed.fetch.web_archive import REQUESTS_PER_MINUTE, Archive, Turns
from wholefeed.futures import unless
from wholefeed.logs import get_logger
from wholefeed.server.clients import Buckets, Networks, TrustedProxies
from wholefeed.server.listening import (
    NOBODY,
    BoundedParser,
    Connections,
    Listeners,
    Supervisor,
    accepting,
    allow_open_files,
    binding,
    bound,
    reaping,
    require_bindable,
)
from wholefeed.service.context import RefreshContext, WalkTurns
from wholefeed.service.service import FeedService
from wholefeed.service.sharing import open_sharing
from wholefeed.service.sharing_hosts import ReplicaHosts, ReplicaTurns
from wholefeed.service.sources import Source
from wholefeed.store.engine_choice import migrate_store, open_store
from wholefeed.store.store import Store
from wholefeed.web import keys
from wholefeed.web.answer import Wants
from wholefeed.web.middlewares import HANDLER_ARGUMENTS, attending, hide_version, protect
from wholefeed.web.request import prefix_of
from wholefeed.web.routes import add_routes
from wholefeed.workers.pool import LargeWork, Workers, worker_count

log = get_logger()

# The server's life

# How long a parsing thread may block others. A transaction needs its turn after each statement; at Python's
# own 5 ms, a large document stretches it to a second.
_SWITCH_SECONDS: Final = 0.0005

# Thresholds of the garbage collector. Python's 700 costs a refresh 2 to 3 % of its CPU. Full collections are
# as frequent as with Python's (700, 10, 10), so errors and their tracebacks do not wait longer.
_COLLECTING: Final = (10_000, 3, 2)


async def serve(
    config: Config, *, on_started: Callable[[str, int], None] | None = None, supervisor: Supervisor = NOBODY
) -> None:
    """Listen until SIGTERM, SIGINT or SIGHUP; then finish answers within the configured grace.

    A start without an address leaves no file behind. `on_started` gets address and port once the server
    listens, in a thread of its own.

    Raises:
        StoreError: The database cannot be used.
        OSError: The address is not available.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    most_connections = allow_open_files()
    stopping = asyncio.Event()
    # aiohttp waits for a hanging handler twice: once before it cancels it and once after.
    app = make_app(config)
    app[keys.CONNECTIONS].at_most = most_connections
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=config.server.shutdown_grace_seconds / 2)
    async with AsyncExitStack() as stack:
        stack.enter_context(_signals_to(stopping))
        await stack.enter_async_context(supervisor.watching())
        sockets = await stack.enter_async_context(_bind(app))
        try:
            # A database file does not fall silent, and what opens one is not to be left half-way.
            async with unless(stopping if config.store.url else asyncio.Event()):
                await runner.setup()
            if runner.server is not None:
                async with reaping(runner.server, app[keys.CONNECTIONS]), AsyncExitStack() as listeners:
                    host, port = await _listen(sockets, runner.server, app, listeners)
                    if on_started is not None:
                        await asyncio.to_thread(on_started, host, port)
                    gc.collect()
                    gc.freeze()  # modules and tables stay: to look through them again is a fifth of an answer
                    gc.set_threshold(*_COLLECTING)
                    supervisor.tell("READY=1", f"STATUS=listening on {host}, port {port}")
                    await stopping.wait()
            supervisor.tell("STOPPING=1", "STATUS=letting answers finish")
        finally:
            await runner.cleanup()
    log.info("server.stopped")


_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""A terminal sends the last one when it is closed."""


@contextmanager
def _signals_to(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = [each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN]  # as under nohup
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _bind(app: web.Application) -> AsyncIterator[Sequence[socket.socket]]:
    config = app[keys.CONFIG].server
    if config.socket:
        await asyncio.to_thread(require_bindable, config.socket)
    async with binding(config.host, config.port) as sockets:
        app[keys.LISTENERS].add(each.getsockname() for each in sockets)
        yield sockets


async def _listen(
    sockets: Sequence[socket.socket], server: web.Server, app: web.Application, stack: AsyncExitStack
) -> tuple[str, int]:
    config, connections = app[keys.CONFIG].server, app[keys.CONNECTIONS]
    await stack.enter_async_context(accepting(sockets, server, connections))
    host, port, *_ = sockets[0].getsockname()
    facts = {}
    if config.socket:
        manager = bound(config.socket)
        unix = await asyncio.to_thread(manager.__enter__)
        stack.push(manager.__exit__)
        await stack.enter_async_context(accepting([unix], server, connections))
        facts = {"socket": config.socket}
    log.info("server.started", host=host, port=port, version=__version__, **facts)
    return host, port


# The application

_LOGINS_PER_MINUTE: Final = 10

_UPLOADED_BYTES: Final = 1 << 26
"""All concurrent uploads together: eight subscription lists of the largest size."""
_UPLOAD_WAIT_SECONDS: Final = 5.0


def make_app(config: Config, **parts: Any) -> web.Application:
    """Build the application, without opening anything yet; `parts` go to `open_service`.

    Raises:
        ConfigError: Everybody could read the feeds of a private publisher (A4).
    """
    _require_closed(config)
    hide_version()
    BoundedParser.use()
    app = web.Application(handler_args=dict(HANDLER_ARGUMENTS))
    app[keys.CONFIG] = config
    counts = app[keys.COUNTS] = Counts()
    app[keys.CONNECTIONS] = Connections()
    app[keys.LISTENERS] = Listeners()
    app[keys.UPLOADS] = MemoryBudget(total_bytes=_UPLOADED_BYTES, wait_seconds=_UPLOAD_WAIT_SECONDS)
    app[keys.LISTS] = LargeWork()
    app[keys.LOGINS] = Buckets(_LOGINS_PER_MINUTE)
    app[keys.TRUSTED] = TrustedProxies(config.server.trusted_proxies)
    app[keys.WANTS] = Wants(config)
    app[keys.METRICS_NETWORKS] = Networks(config.server.metrics_networks)
    if config.server.client_requests_per_minute:
        app[keys.BUCKETS] = Buckets(config.server.client_requests_per_minute)

    async def resources(app: web.Application) -> AsyncIterator[None]:
        own_addresses = app[keys.LISTENERS].include
        opened = open_service(config, counts=counts, own_addresses=own_addresses, **parts)
        async with opened as (store, service):
            app[keys.STORE] = store
            app[keys.SERVICE] = service
            await service.resume()
            in_background = {
                "house-keeping": service.keep_house(),
                "polling": service.keep_polling(),
                "archive": service.mementos.run(),
                "lists": service.lists.run(),
                "texts": service.texts.run(),
                "intakes": service.intakes.run(),
                "taking-over": service.keep_resuming(),
            }
            tasks = [asyncio.create_task(_log_failure(counts, *each)) for each in in_background.items()]
            yield
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    app.cleanup_ctx.append(resources)
    app.on_response_prepare.append(protect)
    app.on_shutdown.append(_stop_waiting)
    app[keys.PREFIX] = prefix_of(config.server.public_url)
    app.middlewares.append(attending(app, add_routes(app, app[keys.PREFIX])))
    return app


def _require_closed(config: Config) -> None:
    private = next((each for each in config.publisher if each.is_private), None)
    if private is not None and not (config.server.access_token or config.server.signing_keys):
        raise ConfigError(
            f"[[publisher]] {private.host} has headers or credentials, so its feeds are not for everybody:"
            " expected server.access_token or server.signing_keys to be set"
        )


async def _log_failure(counts: Counts, name: str, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # the last resort: readers are answered all the same
        counts.troubles[name] += 1
        log.exception("background.failed", name=name)


async def _stop_waiting(app: web.Application) -> None:
    app[keys.SERVICE].stop_waiting()


# The service on its own

_MAX_WALKS: Final = 16
_MAX_WALKS_PER_SITE: Final = 8


@asynccontextmanager
async def open_service(
    config: Config,
    *,
    counts: Counts | None = None,
    own_addresses: OwnAddresses | None = None,
    now: Callable[[], float] = time.time,
    open_fetcher: Callable[..., AbstractAsyncContextManager[Fetcher]] = Fetcher.open,
    walks: WalkTurns | None = None,
    archive_turns: Turns | None = None,
) -> AsyncIterator[tuple[Store, FeedService]]:
    """Migrate and open the store, open the fetcher, and build the service.

    The fetcher refuses `own_addresses`. `now` returns epoch seconds. Only tests pass the last three.

    Raises:
        StoreError: The database cannot be used.
    """
    counts, history, base = counts or Counts(), config.history, config.history.memento_url
    publishers = Publishers(config.publisher)
    open_fetcher = partial(open_fetcher, publishers=publishers, counts=counts, own_addresses=own_addresses)
    if applied := await migrate_store(config.store):
        log.info("migration.applied", name=applied[-1], migrations=len(applied))
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(config.store))
        workers = Workers(await asyncio.to_thread(worker_count, config.limits.workers))
        stack.push_async_callback(workers.close)
        sharing = await stack.enter_async_context(open_sharing(store))
        if sharing.is_shared:
            hosts = ReplicaHosts(sharing.replica, counts)
            stack.push_async_callback(hosts.close)
            store.engine.listen("wanted", hosts.wanted)
            gate = HostGate.from_config(config.fetch, publishers, turns=hosts)
            open_fetcher = partial(open_fetcher, gate=gate)
            archive = ReplicaTurns(sharing.replica, base, per_minute=REQUESTS_PER_MINUTE)
            archive_turns = archive_turns or Turns(reserve=archive.reserve)
        fetcher = await stack.enter_async_context(open_fetcher(config.fetch, config.limits))
        service = FeedService(
            RefreshContext(
                store=store,
                source=Source(fetcher, workers, xml_depth=config.limits.xml_depth),
                config=config,
                site_of=site_of,
                now=now,
                walks=WalkTurns(in_all=_MAX_WALKS, per_site=_MAX_WALKS_PER_SITE) if walks is None else walks,
                archive=Archive(fetcher, base, turns=archive_turns) if history.memento and base else None,
                counts=counts,
                sharing=sharing,
                publishers=publishers,
            )
        )
        stack.push_async_callback(service.close)
        yield store, service
