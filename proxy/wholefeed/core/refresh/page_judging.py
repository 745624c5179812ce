"""A page that an adapter asked for: how it is told of, and whether it belongs (R27)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from wholefeed.core.adapters.asking import Page, Refused
from wholefeed.core.adapters.marks import Marks
from wholefeed.core.adapters.urls import bears
from wholefeed.core.model import EntryId
from wholefeed.core.refresh.events import EntriesRead, FreshDocument
from wholefeed.core.refresh.stored import StoredDocument


def page_stored(row: StoredDocument, read: EntriesRead) -> Page:
    """Describe a stored page to its adapter."""
    order = [at for _, at in read.entries]
    return Page(
        url=row.final_url,
        family=row.family,
        identities=tuple(identity for identity, _ in read.entries),
        updated_at=row.updated_at,
        validators=(row.etag or "", row.last_modified or ""),
        is_ascending=is_downward(order),
        oldest_at=min((at for at in order if at is not None), default=None),
        marks=Marks.read(row.marks or "{}"),
        had_at=row.checked_at,
    )


def page_come(fresh: FreshDocument, identities: tuple[EntryId, ...], *, news: int, now: float) -> Page:
    """Describe a page that has just come to its adapter.

    Args:
        fresh: The page.
        identities: Of its entries, from the top.
        news: How many of them were not stored.
        now: Epoch seconds.
    """
    return Page(
        url=fresh.arrival.final_url,
        family=fresh.arrival.family,
        identities=identities,
        updated_at=fresh.updated_at,
        validators=fresh.validators,
        is_ascending=is_downward(fresh.order),
        oldest_at=min((at for at in fresh.order if at is not None), default=None),
        marks=fresh.marks,
        news=news,
        had_at=now,
    )


def objection_to(
    url: str, fresh: FreshDocument, subscription: StoredDocument, site_of: Callable[[str], str]
) -> Refused | None:
    """R27: another format, another site's, or what redirects made of the question; None: it belongs."""
    arrival = fresh.arrival
    if arrival.family is not subscription.family:
        return Refused("format")
    is_ours = site_of(arrival.final_url) == site_of(subscription.final_url)
    if not is_ours and (not arrival.site_id or arrival.site_id != subscription.site_id):
        return Refused("cross-origin-unconfirmed")
    return None if bears(arrival.final_url, url) else Refused("redirected")


def is_downward(order: Sequence[float | None]) -> bool | None:
    """Return whether entries get newer downwards; None where their dates do not tell."""
    dates = [at for at in order if at is not None]
    ups = sum(one < two for one, two in pairwise(dates))
    downs = sum(one > two for one, two in pairwise(dates))
    return None if ups == downs else ups > downs
