"""From the URL that was asked for to the subscription document (rule R3; discovery)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wholefeed.core.links.classify import Follow, Forward, subscription_hint
from wholefeed.core.notes import CurrentUnavailable, NoSubscriptionDocument, Note
from wholefeed.core.parse.discovery import discover, preferred
from wholefeed.core.text.urls import same_document
from wholefeed.errors import DocumentError, UnreadableError
from wholefeed.fetch.fetched import Fetched
from wholefeed.service.documents.source import Obtained, PageError, Source

MAX_FORWARD_STEPS: Final = 100
"""Archive documents passed on the way to the newest one, where none names its subscription document."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription document of a feed, and how sure that is."""

    url: str
    """What it is looked for by from now on."""
    obtained: Obtained
    notes: tuple[Note, ...] = ()

    @property
    def document_url(self) -> str:
        """What the document itself was asked for by."""
        return self.obtained.fetched.url


async def find_subscription(source: Source, url: str) -> Subscription:
    """Fetch a URL and find the subscription document behind it.

    An HTML page leads to the feed that it announces, an archive document to its `current`.

    Raises:
        DocumentError: Nothing usable as a feed was found.
    """
    try:
        return await settle_subscription(source, url, await _fetched(source, url))
    except PageError as exc:
        page = exc.fetched
    url = _announced_feed(page)
    return await settle_subscription(source, url, await _fetched(source, url))


async def settle_subscription(source: Source, url: str, obtained: Obtained) -> Subscription:
    """Apply R3 to a fetched document: `current` is dereferenced once; without one, go forward.

    Never raises for what cannot be had: then the document itself serves, and a note says so.
    """
    hint = subscription_hint(url, obtained.fetched.final_url, obtained.navigation)
    if isinstance(hint, Follow):
        try:
            return Subscription(hint.url, await _fetched(source, hint.url))
        except DocumentError as exc:
            return Subscription(url, obtained, (CurrentUnavailable(hint.url, exc.slug),))
    if isinstance(hint, Forward):
        return await _newest_archive(source, url, obtained)
    return Subscription(url, obtained)


async def _newest_archive(source: Source, url: str, obtained: Obtained) -> Subscription:
    newest = obtained
    seen = [url, obtained.fetched.final_url]
    for _ in range(MAX_FORWARD_STEPS):
        newer = newest.navigation.newer_url
        if not newer or any(same_document(newer, known) for known in seen):
            break
        try:
            found = await _fetched(source, newer)
        except DocumentError:
            break
        if found.document.family is not obtained.document.family:
            break
        current = subscription_hint(newer, found.fetched.final_url, found.navigation)
        if isinstance(current, Follow):
            return await settle_subscription(source, newer, found)
        newest = found
        seen += [newer, found.fetched.final_url]
    return Subscription(url, newest, (NoSubscriptionDocument(newest.fetched.url),))


async def _fetched(source: Source, url: str) -> Obtained:
    obtained = await source.obtain(url)
    assert not isinstance(obtained, Fetched), "no validators were sent"
    return obtained


def _announced_feed(fetched: Fetched) -> str:
    best = preferred(discover(fetched.body, fetched.final_url, fetched.media_type))
    if best is not None:
        return best.url
    what = "an HTML page that announces no feed"
    raise UnreadableError(f"expected a feed, got {what}", url=fetched.final_url, slug="not-a-feed")
