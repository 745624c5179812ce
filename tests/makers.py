"""Domain values for tests, with defaults for everything a test does not name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wholefeed.core.model import (
    Entry,
    EntryId,
    Family,
    FeedDocument,
    Head,
    HistoryElement,
    Link,
    Role,
    Scope,
    entry_id,
)
from wholefeed.core.notes import Note
from wholefeed.core.origins import POLICIES, Origin
from wholefeed.core.text.urls import resolve
from wholefeed.core.walk.chain import Arrival

FEED = "http://o.test/feed"


def a_link(relation: str, href: str, media_type: str = "", base: str = FEED) -> Link:
    """A link of a head as the parser leaves it: resolved, or without a target."""
    try:
        target = resolve(base, href) if href else ""
    except ValueError:
        target = ""
    return Link(relation, target, media_type, href)


def an_entry(name: str = "e", updated_at: float | None = None, order_at: float | None = None) -> Entry:
    return Entry(entry_id(name), updated_at, order_at, 0, 0)


def a_document(
    *links: Link,
    url: str = FEED,
    family: Family = Family.ATOM,
    site_id: str = "urn:feed",
    updated_at: float | None = None,
    history: Mapping[str, str] | Sequence[str] = (),
    entries: Sequence[Entry] = (),
    notes: Sequence[Note] = (),
) -> FeedDocument:
    """A feed document with these links in its head; `history` names its fh:* elements."""
    texts = history if isinstance(history, Mapping) else dict.fromkeys(history, "")
    head = Head(
        site_id=site_id,
        title="A feed",
        updated_at=updated_at,
        links=links,
        history=tuple(HistoryElement(name, text) for name, text in texts.items()),
        children=(),
        scope=Scope({}, "", url),
    )
    return FeedDocument(url, family, "1.0", b"", head, tuple(entries), tuple(notes))


def a_key(name: str, updated_at: float | None = None) -> tuple[EntryId, float | None]:
    return entry_id(name), updated_at


def an_arrival(
    url: str = FEED,
    older: str | None = None,
    *,
    final_url: str = "",
    hops: Sequence[str] = (),
    family: Family = Family.ATOM,
    site_id: str = "urn:feed",
    links: Mapping[str, str] | None = None,
    digest: bytes = b"",
    body_bytes: int = 1000,
    keys: Sequence[tuple[EntryId, float | None]] | None = (),
    news: bool = True,
) -> Arrival:
    """A document on a walk. By default its body is its own, with one entry named after its URL."""
    own_links = {"prev-archive": older} if older else {}
    held = [a_key(url)] if keys == () else keys
    return Arrival(
        url=url,
        final_url=final_url or url,
        hops=tuple(hops),
        family=family,
        site_id=site_id,
        links={**own_links, **(links or {})},
        digest=digest or url.encode(),
        body_bytes=body_bytes,
        entries=1 if held is None else len(held),
        keys=held,
        news=news,
    )


def origin_of(url: str, role: Role, *, memento: str = "", found_by: str = "") -> Origin:
    if role is Role.MEMORY:
        return Origin.MEMORY
    other = Origin.MEMENTO if memento else Origin.ADAPTER if found_by else Origin.PUBLISHER
    prefixes = {each: policy.url_prefix for each, policy in POLICIES.items() if policy.url_prefix}
    return next((each for each, prefix in prefixes.items() if url.startswith(prefix)), other)
