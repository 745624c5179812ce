"""wholefeed as a library: feeds' whole histories as objects (docs/library.md has examples).

    feed = wholefeed.reconstruct("https://example.org/feed.atom")
    for entry in feed.entries:
        print(entry.updated, entry.title)

    async with wholefeed.open("feeds.db") as library:
        feeds = await asyncio.gather(*map(library.reconstruct, urls))

Rules and store are those of the proxy. The store is temporary, or a database that is kept: then a later call
fetches only what has changed. Nothing is printed, nothing is logged unless the caller has configured
structlog, and no setting of the process is changed.

All that have one store open at once share what works on it (`_Shared`): a database file has one writer.

`__init__.pyi` repeats the signatures: imported there, this module would make one circle of the whole package.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Final, NamedTuple, Self

from wholefeed.app import open_service
from wholefeed.config.tables import Config, config_of
from wholefeed.core.compose.entries import Entries, Feed, Link, Missing, Progress, SegmentTexts, held, instant
from wholefeed.core.model import EntryId, Family, Role, State
from wholefeed.core.parse.limits import PARSER_VERSION, ParseError
from wholefeed.core.text.urls import resolve_or_empty
from wholefeed.errors import InvalidUrlError, OverloadedError, StoreError, StoreUnusableError, UsageError
from wholefeed.futures import retrieve_failure, to_the_end
from wholefeed.service.new_documents import make_stored
from wholefeed.service.results import Reconstruction
from wholefeed.service.service import FeedService
from wholefeed.service.storing import is_collected
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table as documents_table
from wholefeed.store.tables import feed_table, identity_table, segment_table
from wholefeed.store.tables.document_table import list_all, live_ordinals
from wholefeed.web.answer import Representation, prepare
from wholefeed.web.request import feed_url

_LOOK_SECONDS: Final = 0.5
"""Between two looks at how far a walk is, for who wants to be told."""


def reconstruct(
    url: str,
    *,
    config: Config | Mapping[str, object] | None = None,
    store: str | PathLike[str] | None = None,
    wait_seconds: float | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Feed:
    """Return a feed with its whole history, as far as its publisher offers one.

    Args:
        url: The feed's URL, as a reader would take it: the scheme may be missing or `feed:`, and a page that
            announces a feed leads to it.
        config: As for `open`.
        store: The same.
        wait_seconds: When to take what is there, in seconds. None waits for the end of the walk, at most
            `limits.walk_seconds`. With a kept store a later call takes an unfinished walk up.
        progress: Told how far the walk is, about twice a second while that changes, in this thread. What it
            raises ends the call.

    Returns:
        The feed. What is missing of it is no error: `state` and `missing` tell.

    Raises:
        InvalidUrlError: The URL is none that can be fetched.
        ConfigError: A setting is not allowed; the message names it and what is.
        DocumentError: There is no feed to be had; its subclasses and `slug` say why.
        StoreUnusableError: The database is in use, of a newer version, no database, or cannot be made.
        StoreError: The database failed, or its volume is full.
        UsageError: An event loop runs in this thread: `areconstruct` is for there.
        OSError: There is no room for a temporary store.

    All but the last are `wholefeed.WholefeedError`: `slug` is for programs, the message for people.
    """
    if _running_loop() is not None:
        raise UsageError(
            "expected a thread without a running event loop: use `await wholefeed.areconstruct(...)` here"
        )
    work = areconstruct(url, config=config, store=store, wait_seconds=wait_seconds, progress=progress)
    # With a factory of its own the runner leaves the thread's current event loop alone.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


async def areconstruct(
    url: str,
    *,
    config: Config | Mapping[str, object] | None = None,
    store: str | PathLike[str] | None = None,
    wait_seconds: float | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Feed:
    """Return a feed with its whole history: `reconstruct` for code that runs in an event loop.

    Arguments, result and errors are the same. Large documents are worked on in threads; cancelling it closes
    everything that it has opened.
    """
    _canonical(url)  # refused before anything is opened
    async with open(store, config=config) as library:
        return await library.reconstruct(url, wait_seconds=wait_seconds, progress=progress)


def open(  # noqa: A001 - always called as `wholefeed.open`
    store: str | PathLike[str] | None = None, *, config: Config | Mapping[str, object] | None = None
) -> AbstractAsyncContextManager[Library]:
    """Open a store for as long as the block of `async with` lasts.

    Args:
        store: Path of a database to keep, made when it is not there; `store.path` and `store.url` of the
            settings do not count. One process uses it at a time, and in it one event loop, with the same
            settings each time. None: a temporary one.
        config: Settings with the sections and keys of the TOML file, e.g.
            `{"history": {"paged": False}}`; those of the server and the log mean nothing here. None: the
            defaults. Neither `config.toml` nor the environment counts.

    Raises:
        ConfigError: When the block begins: a setting is not allowed; the message names it and what is.
        StoreUnusableError: When the block begins: the database is in use, of a newer version, no database, or
            cannot be made.
        OSError: When the block begins: there is no room for a temporary store.
    """
    return Library.on(store, config or {})


class Library:
    """A store that is open, and the feeds that are reconstructed in it; `wholefeed.open` gives it.

    It belongs to the event loop in which it was opened. Several calls may be under way at once: they keep to
    the limits of each publisher's host together, and two that are for the same feed share its walk. A walk
    goes on, whoever leaves, until the block of the session ends.
    """

    def __init__(self, config: Config, opened: _Opened) -> None:
        self._config = config
        self._store, self._service = opened
        self._loop = asyncio.get_running_loop()
        self._calls: set[asyncio.Task[Feed]] = set()
        self._is_over = False

    @classmethod
    @asynccontextmanager
    async def on(
        cls, store: str | PathLike[str] | None, config: Config | Mapping[str, object]
    ) -> AsyncIterator[Self]:
        """Yield a session; at exit its calls that are under way end with an error."""
        # It may name files of credentials.
        given = config if isinstance(config, Config) else await asyncio.to_thread(config_of, config)
        async with stored(given, store) as own, _open_shared(own) as opened:
            library = cls(own, opened)
            try:
                yield library
            finally:
                library._is_over = True
                await _end_tasks(library._calls)

    async def reconstruct(
        self,
        url: str,
        *,
        wait_seconds: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Feed:
        """Return a feed with its whole history.

        Arguments, result and errors are those of the function `reconstruct`; `progress` is called in the
        event loop, so it must not take long.

        Raises:
            UsageError: The session has ended, perhaps meanwhile; or it belongs to another event loop.
        """
        canonical = _canonical(url)
        self._require_open()
        work = asyncio.create_task(self._feed(canonical, wait_seconds))
        work.add_done_callback(retrieve_failure)
        self._calls.add(work)
        try:
            await self._tell_until_done(work, canonical, progress)
            if work.cancelled():
                raise UsageError(f"expected a session that stays open until the feed is there: {canonical}")
            return work.result()
        finally:
            self._calls.discard(work)
            await _end_tasks({work})

    async def forget_entry(self, url: str, identity: str) -> None:
        """Remove one entry of a feed from the store, until its publisher updates it.

        Later calls of `reconstruct` on the store return the feed without it.

        Args:
            url: The feed's URL, as for `reconstruct`.
            identity: As `Entry.identity` gives it.

        Raises:
            InvalidUrlError: The URL is none that can be fetched.
            UnknownFeedError: The store has no feed of that URL; `slug` is `unknown-feed`.
            NoSuchEntryError: The feed has no entry of that identity; `slug` is `no-such-entry`.
            OverloadedError: The feed is being refreshed; `slug` is `overloaded`.
            StoreError: The database failed, or its volume is full.
            UsageError: The session has ended, or it belongs to another event loop.
        """
        canonical = _canonical(url)
        self._require_open()
        await self._service.forget_entry(canonical, identity)

    def _require_open(self) -> None:
        if self._loop is not _running_loop():
            raise UsageError("expected the event loop that the session was opened in, got another one")
        if self._is_over:
            raise UsageError("expected a session that is open, got one whose block has ended")

    async def _tell_until_done(
        self, work: asyncio.Task[Feed], url: str, progress: Callable[[Progress], object] | None
    ) -> None:
        told = None
        while not work.done():
            await asyncio.wait({work}, timeout=None if progress is None else _LOOK_SECONDS)
            is_failed = work.done() and (work.cancelled() or work.exception() is not None)
            now = None if progress is None or is_failed else await self._progress(url)
            if progress is not None and now is not None and now != told:
                told = now
                progress(now)

    async def _progress(self, url: str) -> Progress | None:
        """Return how far a feed is; None where nothing is known of it."""
        with suppress(StoreError, OverloadedError):
            if await self._service.is_known(url):
                status = await self._service.status(url)
                walk = status.progress
                return Progress(walk.documents, walk.entries, walk.fetched, walk.left)
        return None

    async def _feed(self, url: str, wait_seconds: float | None) -> Feed:
        wait = self._config.limits.walk_seconds if wait_seconds is None else wait_seconds
        deadline = self._loop.time() + wait
        await search_further(self._config, self._service, url, wait_seconds=wait)
        while True:
            left = max(0.0, deadline - self._loop.time())
            async with self._service.answer(url, wait_seconds=left) as reconstruction:
                kept = await self._store.read(partial(_kept, feed=reconstruction.feed.id))
                if not left or not await self._is_outdated(reconstruction, kept, url):
                    return await _feed(reconstruction, kept, self._store, url, self._config)

    async def _is_outdated(self, reconstruction: Reconstruction, kept: _FeedSnapshot, url: str) -> bool:
        """Whether another call has refreshed the feed since it was published so, or is at it.

        What is stored of a feed that is `loading` is ahead of what is published.
        """
        published = reconstruction.feed.published_revision
        if reconstruction.state is State.LOADING or kept.revision == published:
            return False
        if await self._service.is_awaited(url):
            return True
        latest = await self._store.find(url)
        return latest is None or latest.published_revision != published


async def _end_tasks(tasks: set[asyncio.Task[Feed]]) -> None:
    for each in tasks:
        each.cancel()
    if tasks:
        await asyncio.wait(tasks)


# What has a store open


_Opened = tuple[Store, FeedService]


class _Shared:
    """A store that is open in this program, for all who use it at once; it is closed when nobody does.

    A task of its own holds it open: whoever opened it may leave first.
    """

    def __init__(self, path: str, config: Config) -> None:
        self.loop = asyncio.get_running_loop()
        self.config = config
        self.users = 0
        self.is_unused = asyncio.Event()
        """Whether it is being closed."""
        self.opened: asyncio.Future[_Opened] = self.loop.create_future()
        self.opened.add_done_callback(retrieve_failure)
        self.task = asyncio.create_task(self._hold(path))

    async def _hold(self, path: str) -> None:
        try:
            async with open_service(self.config) as opened:
                self.opened.set_result(opened)
                await self.is_unused.wait()
        except Exception as exc:
            if self.opened.done():
                raise
            self.opened.set_exception(exc)
        finally:
            with _SHARING:
                del _SHARED[path]

    async def leave(self) -> None:
        """Close it where nobody else uses it."""
        self.users -= 1
        if not self.users:
            self.is_unused.set()
            await self.task


_SHARED: Final[dict[str, _Shared]] = {}
"""By the database's file."""
_SHARING: Final = threading.Lock()


@asynccontextmanager
async def _open_shared(config: Config) -> AsyncIterator[_Opened]:
    """Yield what works on the store of a configuration, the same for all who have it open at once.

    Raises:
        StoreUnusableError: It cannot be opened; or it is open in another event loop, or with other settings.
    """
    path = await asyncio.to_thread(os.path.realpath, config.store.path)
    config = replace(config, store=replace(config.store, path=path))
    while True:
        with _SHARING:
            shared = _SHARED.get(path)
            if shared is None:
                shared = _SHARED[path] = _Shared(path, config)
        if shared.loop is not _running_loop():
            raise StoreUnusableError(f"{path} is open in another event loop of this program: use it in one")
        if not shared.is_unused.is_set():
            break
        await asyncio.wait({shared.task})
    if shared.config != config:
        raise StoreUnusableError(f"{path} is open in this program with other settings: expected the same")
    shared.users += 1
    try:
        yield await asyncio.shield(shared.opened)
    finally:
        await to_the_end(shared.leave)


@asynccontextmanager
async def stored(config: Config, path: str | PathLike[str] | None = None) -> AsyncIterator[Config]:
    """Yield the configuration with its store in this file, else in a temporary one, removed at exit."""
    if path is not None:
        yield replace(config, store=replace(config.store, path=fspath(path), url=""))
        return
    folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="wholefeed-")
    try:
        once = str(Path(folder.name) / "once.db")
        yield replace(config, store=replace(config.store, path=once, url=""))
    finally:
        await asyncio.to_thread(folder.cleanup)


async def search_further(config: Config, service: FeedService, url: str, *, wait_seconds: float) -> None:
    """Have looked for what the publisher does not link: in a web archive and in its pages, as configured.

    A server does that in the background; without one there is nobody else to.
    """
    if config.history.memento or config.history.list != "off":
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds):
                async with service.answer(url, wait_seconds=wait_seconds):
                    pass
                await service.mementos.finish(url)
                await service.lists.finish(url)


# A feed as an object


def _canonical(url: str) -> str:
    if not url:
        raise InvalidUrlError("expected the URL of a feed, got nothing")
    return feed_url(url)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _FeedSnapshot(NamedTuple):
    """What is stored of a feed, all of it of one moment."""

    revision: int
    documents: list[tuple[DocumentRow, documents_table.EncodedBody]]
    live: dict[int, tuple[int, ...]]
    """Which entries of each document are the feed's."""
    ambiguous: frozenset[EntryId]
    """The keys of no entry (R9)."""
    order: list[tuple[int, int | None]]
    """As `segment_table.contents`, where entries stand elsewhere than in their documents; else empty."""


def _kept(db: Database, feed: int) -> _FeedSnapshot:
    rows = [row for row in list_all(db, feed) if row.rank is not None]
    return _FeedSnapshot(
        feed_table.require(db, feed).revision,
        [(row, documents_table.read_encoded(db, row.id)) for row in rows],
        live_ordinals(db, [row.id for row in rows]),
        identity_table.read_ambiguous(db, feed),
        segment_table.contents(db, feed)
        if not is_collected(rows) and segment_table.members(db, feed)
        else [],
    )


async def _feed(
    reconstruction: Reconstruction, kept: _FeedSnapshot, store: Store, url: str, config: Config
) -> Feed:
    asked = Representation(self_url=url, is_gzip=True, warns=config.history.warn_entry)
    coded = [piece async for piece in prepare(reconstruction, asked).body.pieces(store)]
    title, links, entries = await asyncio.to_thread(_read, kept)
    return Feed(
        url=reconstruction.feed.url,
        state=reconstruction.state,
        is_stale=reconstruction.is_stale,
        title=title,
        links=links,
        missing=tuple(
            Missing(
                url=each.url,
                reason=each.reason,
                status=each.status,
                attempts=each.attempts,
                next_attempt=instant(each.next_at),
            )
            for each in reconstruction.missing
        ),
        entries=entries,
        _coded=b"".join(coded),
    )


def _read(kept: _FeedSnapshot) -> tuple[str, tuple[Link, ...], Entries]:
    """Return a feed's title, its links and its entries."""
    title, links = "", tuple[Link, ...]()
    documents: list[SegmentTexts] = []
    order: dict[int, dict[int | None, int]] = {row.id: {} for row, _ in kept.documents}
    for place, (document, ordinal) in enumerate(kept.order):
        order[document][ordinal] = place
    places: list[Mapping[int | None, int]] = []
    for row, coded in kept.documents:
        body = coded.decode()
        with suppress(ParseError):  # an earlier version could read it: its entries are in the document alone
            if row.role is Role.SUBSCRIPTION:
                title, links = _head(row, body)
            is_current = row.parser_version == PARSER_VERSION
            documents.append(held(make_stored(row, body), kept.live[row.id], is_current=is_current))
            places.append(order[row.id])
    is_sorted = is_collected([row for row, _ in kept.documents])
    if kept.order:
        return title, links, Entries.in_places(documents, kept.ambiguous, places)
    return title, links, (Entries.by_publication if is_sorted else Entries)(documents, kept.ambiguous)


def _head(row: DocumentRow, body: bytes) -> tuple[str, tuple[Link, ...]]:
    """Return title and links of the subscription document; the channel's link of RSS is one, too."""
    document = make_stored(row, body).parse()
    head = document.head
    links = [
        Link(relation=link.relation, url=link.target, media_type=link.media_type)
        for link in head.links
        if link.target
    ]
    site = resolve_or_empty(head.scope.base, head.site_id)
    if site and document.family in (Family.RSS, Family.JSON):
        links.insert(0, Link(relation="alternate", url=site, media_type=""))
    return " ".join(head.title.split()), tuple(links)
