"""What a web archive has of documents that their publisher does not give (R33; RFC 7089).

    of another document of the chain, or a page -> kept detached, until the walk comes by and misses it
    of the subscription document of a feed      -> a page behind all others, if it brings anything that no
    that is gone                                   other document holds; where nothing is stored of the feed
                                                   the newest stands in for the subscription document

A copy is the feed as it once stood: it settles, detaches and buries nothing, and what it says of the feed
itself counts for nothing. The feed is partial while one stands, and the publisher's own document replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.memento.notes import MementoServed
from wholefeed.core.refresh.adding import adds_to
from wholefeed.core.refresh.events import ArchivedCopy, KnownRead, Stored
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import Drop, Put, ReadKnown, Steps, carry_out, outcome
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.terms import Kind, Role
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.text.urls import document_key

_BEHIND_ALL: Final = 1 << 40
"""Rank of a copy of the year 1970; those made later stand before it."""


def copy_steps(given: Given, documents: Sequence[StoredDocument], current: Current) -> Steps[bool]:
    """Store the copies that came; return whether there were any of use.

    Args:
        given: What the refresh starts from, the copies among it.
        documents: As they are stored now.
        current: The subscription document.
    """
    own = {(row.role, document_key(row.url)) for row in documents if not row.memento}
    serving = {row.memento for row in documents if row.role is Role.SUBSCRIPTION and row.rank is not None}
    is_any = False
    for copy in given.copies:
        is_page = copy.is_subscription or current.kind is Kind.PAGED
        role = Role.PAGE if is_page else Role.ARCHIVE
        url = copy.copy_url if copy.is_subscription else copy.url
        is_of_use = (role, document_key(url)) not in own
        if is_of_use and copy.is_subscription and copy.copy_url not in serving:
            is_of_use = yield from _brings_more(copy)
        if is_of_use:
            rank = _BEHIND_ALL - int(copy.captured_at) if copy.is_subscription else None
            yield from outcome(Put(url=copy.copy_url, stored_url=url, role=role, rank=rank), Stored)
        else:
            yield from carry_out(Drop(copy.copy_url))
        is_any |= is_of_use
    return is_any


def _brings_more(copy: ArchivedCopy) -> Steps[bool]:
    keys = list(copy.fresh.arrival.keys or ())
    wanted = ReadKnown(tuple(identity for identity, _ in keys), with_copies=True, url=copy.copy_url)
    read = yield from outcome(wanted, KnownRead)
    return adds_to(read, copy.fresh, copy.captured_at)


def standing(given: Given, documents: Sequence[StoredDocument]) -> list[MementoServed]:
    """Tell of the copies of the subscription document that stand: of it as it is, and as it was earlier."""
    attached = [row for row in documents if row.memento and row.rank is not None]
    notes = [row.as_memento() for row in attached if row.role is Role.SUBSCRIPTION]
    of_use = (row for row in attached if row.is_capture and row.live_bytes)
    captures = sorted(of_use, key=lambda row: row.fetched_at)
    if captures:
        oldest, newest = captures[0], captures[-1]
        times = [format_rfc3339(each.fetched_at) for each in (oldest, newest)]
        when = times[1] if oldest is newest else f"{times[0]} to {times[1]}"
        notes.append(MementoServed(given.feed.fetch_url, newest.memento, when, len(captures)))
    return notes
