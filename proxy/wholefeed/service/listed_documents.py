"""Entries listed in a publisher's pages, as documents of its feed (H5 to H7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from wholefeed.core.compose.listed import named_entries, without, write_list
from wholefeed.core.facts import Stored
from wholefeed.core.listing.joined_sources import ListedPage
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.listing.page_links import link_variants
from wholefeed.core.model import MEDIA_TYPE, EntryId, Family, Role, entry_id
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.arrivals import Placement
from wholefeed.service.new_documents import make_stored, new_document
from wholefeed.service.sources import Obtained, Source, drop_links, work_bytes
from wholefeed.service.storing import FeedStorage
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, NewDocument
from wholefeed.store.tables import document_table
from wholefeed.workers.pool import Workers

Read = Callable[[Callable[[Database], bytes]], Awaitable[bytes]]


async def name_entries(work: Workers, read: Read, row: DocumentRow) -> list[FeedEntry]:
    """Return links, titles and dates of a document's entries, from the top."""
    body = await read(partial(document_table.read_body, document=row.id))
    async with work.large.turn(len(body)):
        return await work.run(work_bytes(body), named_entries, make_stored(row, body))


async def make_listed(
    source: Source, page: ListedPage, like: DocumentRow, *, older: Stored | None, now: float
) -> Obtained:
    """Return a page's list as a document in the format of `like`, the subscription document.

    `older`, the list's stored version, stays in it (R29).

    Raises:
        DocumentError: Too large.
    """
    body = await asyncio.to_thread(
        write_list, page.entries, like.family, like.version, undated_at=now, older=older
    )
    return await _read(source, body, page.url, like.family, now)


async def split_lists(
    source: Source, storage: FeedStorage, own: DocumentRow, lists: Sequence[DocumentRow]
) -> list[NewDocument]:
    """Return lists without entries linked by the subscription document `own`, which says more of them."""
    # an entry that leaves the subscription document later is remembered, so no list lacks it
    names = await name_entries(source.work, storage.read, own)
    wanted = await asyncio.to_thread(_identities, names)
    holding = partial(
        document_table.find_holders, feed=own.feed, identities=wanted, documents=[row.id for row in lists]
    )
    puts = []
    for number, ordinals in (await storage.read(holding)).items():
        row = next(row for row in lists if row.id == number)
        body = await storage.read(partial(document_table.read_body, document=number))
        rest = await source.work.run(work_bytes(body), without, make_stored(row, body), ordinals)
        obtained = await _read(source, rest, row.memento, row.family, row.fetched_at)
        puts.append(new_document(obtained, Placement(url=row.url, role=Role.PAGE, rank=row.rank)))
    return puts


def _identities(names: Iterable[FeedEntry]) -> list[EntryId]:
    links = {variant for each in names if each.link for variant in link_variants(each.link)}
    return [entry_id(link) for link in sorted(links)]


async def _read(source: Source, body: bytes, page_url: str, family: Family, now: float) -> Obtained:
    media_type = MEDIA_TYPE[family] if family is Family.JSON else "application/xml; charset=utf-8"
    kept = source.read_kept(body, Origin.LISTING, page_url, url=page_url, media_type=media_type, at=now)
    return drop_links(await kept)
