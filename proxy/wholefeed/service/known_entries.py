"""Comparison of a new document's entries with the stored feed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from wholefeed.core.compose.same_posts import read_traits
from wholefeed.core.facts import DocumentFacts
from wholefeed.core.model import EntryId, FeedDocument, Role, Traits
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.accounting import Departure
from wholefeed.core.refresh.arrivals import KnownEntries
from wholefeed.errors import WorkError
from wholefeed.logs import get_logger
from wholefeed.service.identifying import LookedUp, look_up, name_posts
from wholefeed.service.new_documents import make_stored_of
from wholefeed.service.sources import Obtained, work_bytes
from wholefeed.service.storing import FeedStorage
from wholefeed.store.base import Database
from wholefeed.store.tables import document_table, identity_table
from wholefeed.store.tables import live as live_table

log = get_logger()

_T = TypeVar("_T")


async def find_known(
    storage: FeedStorage,
    asked: Sequence[EntryId],
    waiting: DocumentFacts | None,
    *,
    with_copies: bool,
    with_pages: bool,
) -> KnownEntries:
    """Look up entries for the request `FindKnown`."""
    look = partial(_known_entries, feed=storage.feed_id, asked=asked, waiting=waiting)
    return await storage.read(partial(look, with_copies=with_copies, with_pages=with_pages))


async def find_departure(
    storage: FeedStorage,
    document: int,
    asked: Sequence[EntryId],
    come: DocumentFacts,
    waiting: Sequence[int],
) -> Departure:
    """Find entries of a stored document that its new version lacks (R35)."""
    look = partial(_departure, feed=storage.feed_id, document=document, asked=asked, come=come)
    return await storage.read(partial(look, waiting=waiting))


async def identify(storage: FeedStorage, obtained: Obtained, others: Sequence[DocumentFacts]) -> Obtained:
    """Return a document with its entries identified in the feed (R9, R36).

    `others` are fetched and not stored yet.
    """
    facts, document = obtained.read.facts, obtained.document
    if not facts.keys and any(row.digest == obtained.read.digest for row in storage.rows or ()):
        return obtained  # the same bytes are stored
    is_first = storage.rows == [] and not (facts.keys or others)
    known = frozenset[EntryId]() if facts.keys else _find_in_memory(storage)
    if known and known.issuperset(facts.entries.identities()):
        return obtained
    if document is not None and not is_first:
        identify = partial(_identified_facts, facts=facts, document=document, others=others, known=known)
        return _with_facts(obtained, await storage.read(partial(identify, feed=storage.feed_id)))
    found = LookedUp.of_first(facts)
    if not is_first:
        look = partial(look_up, feed=storage.feed_id, facts=facts, others=others, known=known)
        found = await storage.read(look)
    traits = await _read_traits(storage, obtained, found.new)
    if is_first or not (traits or found.posts):
        return _with_facts(obtained, name_posts(None, storage.feed_id, found, traits, others))
    name = partial(name_posts, feed=storage.feed_id, found=found, traits=traits, others=others)
    return _with_facts(obtained, await storage.read(name))


def _find_in_memory(storage: FeedStorage) -> frozenset[EntryId]:
    if storage.feed is None or storage.feed.renamed:  # some ids may be other ids of a post
        return frozenset()
    stored = (row for row in storage.rows or () if row.role is Role.SUBSCRIPTION and row.rank is not None)
    held = (storage.parsed.find(row) for row in stored if row.parser_version == PARSER_VERSION)
    entries = (each for document in held if document is not None for each in document.entries)
    return frozenset(each.identity for each in entries if each.keys is None)


async def _read_traits(storage: FeedStorage, obtained: Obtained, ordinals: Sequence[int]) -> Sequence[Traits]:
    """Return traits; none if they take too much computing."""
    if not ordinals:
        return ()
    if obtained.document is not None:
        return read_traits(obtained.document, ordinals)
    stored = make_stored_of(obtained.fetched)
    try:
        return await storage.work.run(work_bytes(stored.body), read_traits, stored, ordinals)
    except WorkError as exc:
        log.warning("document.unreadable", feed=storage.feed_id, slug=exc.slug)
        return ()


def _known_entries(
    db: Database,
    feed: int,
    asked: Sequence[EntryId],
    waiting: DocumentFacts | None,
    *,
    with_copies: bool,
    with_pages: bool,
) -> KnownEntries:
    """Look up entries by their present identities; key the result by those in `asked`."""
    # documents stored since the fetch may have changed the identities
    present = _identified_now(db, feed, asked, waiting) if waiting and waiting.keys else asked
    known = _rename(document_table.find_known_dates(db, feed, present, but=None), asked, present)
    found = KnownEntries(known)
    if with_copies:
        served = _rename(live_table.find_served_copies(db, feed, present), asked, present)
        updated_at = live_table.subscription_updated_at(db, feed)
        found = found._replace(live=served, subscription_updated_at=updated_at)
    if with_pages:
        held = document_table.find_on_pages(db, feed, present)
        on_pages = frozenset(old for old, new in zip(asked, present, strict=True) if new in held)
        found = found._replace(on_pages=on_pages)
    return found


def _departure(
    db: Database,
    feed: int,
    document: int,
    asked: Sequence[EntryId],
    come: DocumentFacts,
    waiting: Sequence[int],
) -> Departure:
    present = set(_identified_now(db, feed, asked, come) if come.keys else asked)
    stood = document_table.list_identities_except(db, document, ())
    gone = [identity for identity in stood if identity not in present]
    if not gone:
        return Departure(frozenset())
    left = live_table.find_departing(db, feed, document, waiting).difference(present)
    return Departure(frozenset(left), has_gap=len(gone) == len(stood))


def _identified_now(
    db: Database, feed: int, asked: Sequence[EntryId], waiting: DocumentFacts
) -> Sequence[EntryId]:
    ambiguous = identity_table.find_ambiguous(db, feed, waiting.keys, waiting.ambiguous)
    present = list(asked)
    for ordinal, identity in waiting.keys.identities(ambiguous).items():
        if waiting.own.get(ordinal) != identity:  # else the entry has its post's identity (R36)
            present[ordinal] = identity
    return present


def _rename(
    found: Mapping[EntryId, _T], asked: Sequence[EntryId], present: Sequence[EntryId]
) -> Mapping[EntryId, _T]:
    if asked is present:
        return found
    return {old: found[new] for old, new in zip(asked, present, strict=True) if new in found}


def _identified_facts(
    db: Database,
    feed: int,
    facts: DocumentFacts,
    document: FeedDocument,
    others: Sequence[DocumentFacts],
    known: Collection[EntryId],
) -> DocumentFacts:
    found = look_up(db, feed, facts, others, known)
    return name_posts(db, feed, found, read_traits(document, found.new), others)


def _with_facts(obtained: Obtained, facts: DocumentFacts) -> Obtained:
    return replace(obtained, read=replace(obtained.read, facts=facts))
