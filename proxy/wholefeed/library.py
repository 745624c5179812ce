"""wholefeed as a library: one feed's whole history as an object (docs/library.md has an example).

    feed = wholefeed.reconstruct("https://example.org/feed.atom")
    for entry in feed.entries:
        print(entry.updated, entry.title)

Rules and store are those of the proxy. The store is temporary, or a database that is kept: then a later call
fetches only what has changed. Nothing is printed, nothing is logged unless the caller has configured
structlog, and no setting of the process is changed.

`__init__.pyi` repeats the signatures: imported there, this module would make one circle of the whole package.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path

from wholefeed.app import open_service
from wholefeed.config.tables import Config, config_of
from wholefeed.core.compose.entries import Entries, Feed, Held, Link, Missing, held, instant
from wholefeed.core.model import EntryId, Family, Role
from wholefeed.core.parse.limits import PARSER_VERSION, ParseError
from wholefeed.core.text.urls import resolve_or_empty
from wholefeed.errors import InvalidUrlError, RunningLoopError
from wholefeed.service.documents import stored_as
from wholefeed.service.results import Reconstruction
from wholefeed.service.service import FeedService
from wholefeed.service.storing import is_collected
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow
from wholefeed.store.store import Store
from wholefeed.store.tables import documents as documents_table
from wholefeed.store.tables import identities
from wholefeed.store.tables.documents import list_all, live_ordinals
from wholefeed.web.answer import Representation, prepare, slices
from wholefeed.web.request import feed_url


def reconstruct(
    url: str,
    *,
    config: Config | Mapping[str, object] | None = None,
    store: str | PathLike[str] | None = None,
    wait_seconds: float | None = None,
) -> Feed:
    """Return a feed with its whole history, as far as its publisher offers one.

    Args:
        url: The feed's URL, as a reader would take it: the scheme may be missing or `feed:`, and a page that
            announces a feed leads to it.
        config: Settings with the sections and keys of the TOML file, e.g.
            `{"history": {"paged": False}}`; those of the server and the log mean nothing here. None: the
            defaults. Neither `config.toml` nor the environment counts.
        store: Path of a database to keep, made when it is not there; `store.path` and `store.url` of the
            settings do not count. One process uses it at a time. None: a temporary one.
        wait_seconds: When to take what is there, in seconds. None waits for the end of the walk, at most
            `limits.walk_seconds`. With a kept store a later call takes an unfinished walk up.

    Returns:
        The feed. What is missing of it is no error: `state` and `missing` tell.

    Raises:
        InvalidUrlError: The URL is none that can be fetched.
        ConfigError: A setting is not allowed; the message names it and what is.
        DocumentError: There is no feed to be had; its subclasses and `slug` say why.
        StoreUnusableError: The database is in use, of a newer version, no database, or cannot be made.
        StoreError: The database failed, or its volume is full.
        RunningLoopError: An event loop runs in this thread: `areconstruct` is for there.
        OSError: There is no room for a temporary store.

    All but the last are `wholefeed.WholefeedError`: `slug` is for programs, the message for people.
    """
    if _is_loop_running():
        raise RunningLoopError(
            "expected a thread without a running event loop: use `await wholefeed.areconstruct(...)` here"
        )
    work = areconstruct(url, config=config, store=store, wait_seconds=wait_seconds)
    # With a factory of its own the runner leaves the thread's current event loop alone.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


async def areconstruct(
    url: str,
    *,
    config: Config | Mapping[str, object] | None = None,
    store: str | PathLike[str] | None = None,
    wait_seconds: float | None = None,
) -> Feed:
    """Return a feed with its whole history: `reconstruct` for code that runs in an event loop.

    Arguments, result and errors are the same. Large documents are worked on in threads; cancelling it closes
    everything that it has opened.
    """
    if not url:
        raise InvalidUrlError("expected the URL of a feed, got nothing")
    canonical = feed_url(url)
    # It may name files of credentials.
    given = config if isinstance(config, Config) else await asyncio.to_thread(config_of, config or {})
    async with stored(given, store) as own, open_service(own) as (opened, service):
        wait = own.limits.walk_seconds if wait_seconds is None else wait_seconds
        await search_further(own, service, canonical, wait_seconds=wait)
        async with service.answer(canonical, wait_seconds=wait) as reconstruction:
            await service.close()  # from here on the store stays as it is
            return await _feed(reconstruction, opened, canonical, own)


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


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _feed(reconstruction: Reconstruction, store: Store, url: str, config: Config) -> Feed:
    feed = reconstruction.feed
    asked = Representation(self_url=url, is_gzip=True, warns=config.history.warn_entry)
    coded = [piece async for piece in slices(prepare(reconstruction, asked), store)]
    rows, live, ambiguous = await store.read(partial(_attached, feed_id=feed.id))
    title, links = "", tuple[Link, ...]()
    documents: list[Held] = []
    for row in rows:
        body = await store.read(partial(documents_table.read_body, document=row.id))
        with suppress(ParseError):  # an earlier version could read it: its entries are in the document alone
            if row.role is Role.SUBSCRIPTION:
                title, links = await asyncio.to_thread(_head, row, body)
            is_current = row.parser_version == PARSER_VERSION
            document = stored_as(row, body)
            documents.append(await asyncio.to_thread(held, document, live[row.id], is_current=is_current))
    entries_of = Entries.by_publication if is_collected(rows) else Entries
    entries = await asyncio.to_thread(entries_of, documents, ambiguous)
    return Feed(
        url=feed.url,
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


def _attached(
    db: Database, feed_id: int
) -> tuple[list[DocumentRow], dict[int, tuple[int, ...]], frozenset[EntryId]]:
    """Return a feed's documents, the ordinals of each one's live entries, and the keys of no entry (R9)."""
    rows = [row for row in list_all(db, feed_id) if row.rank is not None]
    return rows, live_ordinals(db, [row.id for row in rows]), identities.ambiguous(db, feed_id)


def _head(row: DocumentRow, body: bytes) -> tuple[str, tuple[Link, ...]]:
    """Return title and links of the subscription document; the channel's link of RSS is one, too."""
    document = stored_as(row, body).parse()
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
