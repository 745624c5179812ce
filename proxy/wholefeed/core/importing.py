"""Which documents that people have kept are taken into a feed, and of which time each is (I1).

    why = refusal(kept, feed, has_common=False, is_forced=False)      # None: it is taken
    at = time_of(given=None, dates=[newest_at, updated_at], file_at=None, now=now)

What becomes of one that is taken stands in `wholefeed.core.refresh.offered` (where it is part of the feed),
`wholefeed.core.merge` (which copy of an entry stays).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from wholefeed.core.memento import is_confirmed
from wholefeed.core.model import Family, Relation


class Named(NamedTuple):
    """What a document says of the feed that it is of."""

    family: Family
    site_id: str
    """As `Head.site_id`."""
    links: Mapping[str, str]
    """As `Navigation.links`."""
    urls: Sequence[str] = ()
    """Of a feed's own document: what it goes by."""


class Refusal(NamedTuple):
    """Why a document is not taken."""

    slug: str
    text: str


def refusal(kept: Named, feed: Named, *, has_common: bool, is_forced: bool) -> Refusal | None:
    """Return why a kept document is not taken into a feed; None: it is.

    A name may have changed in the years between, so an entry in common counts as much. A host alone says
    little, many feeds stand at one: it counts where neither document says anything better.

    Args:
        kept: The document.
        feed: The feed's subscription document.
        has_common: Whether an entry of it is one that the feed has or had.
        is_forced: Whether its owner knows better.
    """
    if kept.family is not feed.family:  # R23: it could not be served, whoever insists
        return Refusal(slug="format", text=f"expected {feed.family} as the feed is, got {kept.family}")
    if is_forced or has_common:
        return None
    if is_confirmed(kept.site_id, kept.links, feed_site_id=feed.site_id, feed_urls=feed.urls):
        return None
    host = _host(kept)
    if host and not (kept.site_id or feed.site_id) and host in map(_host_of, feed.urls):
        return None
    named = f"it says that it is of {kept.site_id}" if kept.site_id else "it does not say which it is of"
    return Refusal(slug="another-feed", text=f"expected a document of this feed, {named[:_LONGEST_NAMED]}")


_LONGEST_NAMED: Final = 300


def _host(kept: Named) -> str:
    own = kept.links.get(Relation.SELF) or kept.links.get(Relation.CURRENT) or ""
    return _host_of(own)


def _host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


_OLDEST: Final = 1.0
"""Epoch seconds: a file of a time before counts as of this one."""


def time_of(
    given: float | None, dates: Iterable[float | None], file_at: float | None, *, now: float
) -> float:
    """Return when a document was as it was kept: its time of fetch, as R10 and R20 take it.

    Args:
        given: What its owner says.
        dates: Those in it; what lies in the future is no date of a document that was kept.
        file_at: When the file was changed last.
        now: Epoch seconds.
    """
    known = [each for each in dates if each is not None and each <= now]
    found = given if given is not None else max(known, default=file_at)
    return min(max(now if found is None else found, _OLDEST), now)
