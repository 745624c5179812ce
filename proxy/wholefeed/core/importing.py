"""The check that an imported document belongs to a feed, and the document's time (I1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from wholefeed.core.memento import is_confirmed
from wholefeed.core.model import Family, Relation


class Named(NamedTuple):
    family: Family
    site_id: str
    links: Mapping[str, str]
    """See `Navigation.links`."""
    urls: Sequence[str] = ()
    """URLs of the feed; only for a subscription document."""


class Refusal(NamedTuple):
    slug: str
    text: str


def refusal(kept: Named, feed: Named, *, has_common: bool, is_forced: bool) -> Refusal | None:
    """Return why a document cannot be imported into a feed; None: it can.

    `has_common`: the feed has or had one of its entries. `is_forced`: the owner insists.
    """
    if kept.family is not feed.family:  # R23: no feed serves another format, even if forced
        return Refusal(
            slug="format", text=f"expected a document in the feed's format, {feed.family}, got {kept.family}"
        )
    # Names change over the years, so an entry in common counts as much.
    if is_forced or has_common:
        return None
    if is_confirmed(kept.site_id, kept.links, feed_site_id=feed.site_id, feed_urls=feed.urls):
        return None
    host = _host(kept)
    # A host alone says little, because many feeds share one: it counts only if neither document has a name.
    if host and not (kept.site_id or feed.site_id) and host in map(_host_of, feed.urls):
        return None
    named = (
        f"the document says that it belongs to {kept.site_id}"
        if kept.site_id
        else "the document does not say which feed it belongs to"
    )
    text = f"expected a document of this feed, {named[:_LONGEST_NAMED]}; {HOW_TO_FORCE} takes it all the same"
    return Refusal(slug="another-feed", text=text)


HOW_TO_FORCE: Final = "--force (over HTTP force=1)"
_LONGEST_NAMED: Final = 300


def _host(kept: Named) -> str:
    own = kept.links.get(Relation.SELF) or kept.links.get(Relation.CURRENT) or ""
    return _host_of(own)


def _host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


# Epoch seconds: earlier times are raised to this one.
_OLDEST: Final = 1.0


def time_of(
    given: float | None, dates: Iterable[float | None], file_at: float | None, *, now: float
) -> float:
    """Return the time of fetch for R10 and R20, epoch seconds.

    The owner's statement (`given`) precedes the newest of the document's `dates` up to `now`. Then comes
    `file_at`, the last change of the file.
    """
    known = [each for each in dates if each is not None and each <= now]
    found = given if given is not None else max(known, default=file_at)
    return min(max(now if found is None else found, _OLDEST), now)
