"""wholefeed as a library: feeds' whole histories as objects (docs/library.md).

The library prints nothing, changes no setting of the process, and logs only if the caller has configured
structlog. A database file has one writer, so all users of one store share its service (`_Shared`).
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


# `__init__.pyi` repeats the signatures: an import of this module there would be circular.
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
        url: A feed's or page's URL; the scheme may be missing or `feed:`.
        config: As for `open`.
        store: As for `open`.
        wait_seconds: None waits for the end of the walk, at most `limits.walk_seconds`. With a kept store,
            a later call continues an unfinished walk.
        progress: Called in this thread about twice a second while the progress changes; may raise to end
            the call.

    Returns:
        The feed, perhaps incomplete: see `state` and `missing`.

    Raises:
        InvalidUrlError: No fetch can use the URL.
        ConfigError: A setting is not allowed.
        DocumentError: There is no feed; subclass and `slug` say why.
        StoreUnusableError: The database is in use, of a newer version, no database, or cannot be created.
        StoreError: The database failed, or its volume is full.
        UsageError: An event loop runs in this thread: use `areconstruct`.
        OSError: No room for a temporary store. All other errors are `WholefeedError`s.
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
    """Return a feed as `reconstruct` does, for code in an event loop.

    Threads process large documents. A cancellation closes all that the call opened.
    """
    _canonical(url)  # refused before anything is opened
    async with open(store, config=config) as library:
        return await library.reconstruct(url, wait_seconds=wait_seconds, progress=progress)


def open(  # noqa: A001 - always called as `wholefeed.open`
    store: str | PathLike[str] | None = None, *, config: Config | Mapping[str, object] | None = None
) -> AbstractAsyncContextManager[Library]:
    """Open a store for the duration of an `async with` block, with errors as for `reconstruct`.

    Args:
        store: Path of a database, created if missing, instead of `store.path` and `store.url`. One event loop
            at a time uses it, always with the same settings. None: a temporary one.
        config: Settings by the sections and keys of the TOML file, such as `{"history": {"paged": False}}`.
            None: the defaults, without `config.toml` and the environment.
    """
    return Library.on(store, config or {})


class Library:
    """An open store, and the feeds reconstructed in it; belongs to one event loop.

    Concurrent calls share each host's limits, and a feed's walk. A walk goes on until the session ends.
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
        """Yield a session; its exit ends calls under way with an error."""
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
        """Return a feed as the function `reconstruct` does; `progress` runs in the event loop.

        Raises:
            UsageError: The session has ended, perhaps meanwhile, or belongs to another event loop.
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
        """Remove one entry of a feed from the store until its publisher updates it.

        Raises:
            UnknownFeedError: The store has no such feed.
            NoSuchEntryError: The feed has no entry of that `Entry.identity`.
            OverloadedError: The feed is being refreshed.
            InvalidUrlError, StoreError, UsageError: As for `reconstruct`.
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
        published = reconstruction.feed.published_revision
        # While a feed is loading, the stored documents are ahead of the published ones.
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
    """An open store for all its users; a task holds it open, since its opener may leave."""

    def __init__(self, path: str, config: Config) -> None:
        self.loop = asyncio.get_running_loop()
        self.config = config
        self.users = 0
        self.is_unused = asyncio.Event()
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
        self.users -= 1
        if not self.users:
            self.is_unused.set()
            await self.task


_SHARED: Final[dict[str, _Shared]] = {}
_SHARING: Final = threading.Lock()


@asynccontextmanager
async def _open_shared(config: Config) -> AsyncIterator[_Opened]:
    """Yield a configuration's store and service, shared by all users.

    Raises:
        StoreUnusableError: Unusable, or open in another event loop or with other settings.
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
    """Yield the configuration with this store file, or with a temporary one."""
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
    """Search web archives and pages as configured, which a server does in the background."""
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
    revision: int
    documents: list[tuple[DocumentRow, documents_table.EncodedBody]]
    live: dict[int, tuple[int, ...]]
    ambiguous: frozenset[EntryId]
    order: list[tuple[int, int | None]]
    """Rows of `segment_table.contents`; empty: entries stand as in their documents."""


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
    document = make_stored(row, body).parse()
    head = document.head
    links = [
        Link(relation=link.relation, url=link.target, media_type=link.media_type)
        for link in head.links
        if link.target
    ]
    site = resolve_or_empty(head.scope.base, head.site_id)
    # The link of an RSS channel counts as one of the feed's links.
    if site and document.family in (Family.RSS, Family.JSON):
        links.insert(0, Link(relation="alternate", url=site, media_type=""))
    return " ".join(head.title.split()), tuple(links)
