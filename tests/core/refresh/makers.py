"""Inputs of a refresh, with defaults for everything a test does not name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tests.makers import FEED, an_arrival, origin_of
from wholefeed.core.merge import Fullness
from wholefeed.core.model import Family, Kind, Role, State
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.arrivals import Failure, FreshDocument
from wholefeed.core.refresh.basis import Basis, RefreshRequest, Settings
from wholefeed.core.refresh.stored import Attempt, StoredDocument, StoredFeed
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.walk.chain import Arrival, WalkLimits
from wholefeed.fetch.base import site_of

NOW: Final = 1_700_000_000.0
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
O: Final = "http://o.test"  # noqa: E741
LIMITS: Final = WalkLimits(documents=200, bytes=10**9, entries=10**6)
GONE: Final = Failure(slug="publisher-status", publisher_status=404)
UNAVAILABLE: Final = Failure(slug="publisher-status", publisher_status=503)


def archive(number: int | str) -> str:
    """URL of an archive document; the newest has the highest number."""
    return f"{O}/archive/{number}"


def a_feed(**changes: Any) -> StoredFeed:
    values: dict[str, Any] = {
        "id": 1,
        "url": FEED,
        "fetch_url": FEED,
        "moved_to": None,
        "moved_since": None,
        "moved_times": 0,
        "family": Family.ATOM,
        "kind": Kind.PLAIN,
        "state": State.LOADING,
        "is_walking": False,
        "revision": 0,
        "published_revision": 0,
        "notes": "[]",
        "digest": None,
        "collection": "{}",
        "listing": "{}",
        "list_at": None,
        "first_seen_at": 0.0,
        "family_since": None,
    }
    return StoredFeed(**(values | changes))


def a_published_feed(state: State, **changes: Any) -> StoredFeed:
    """A feed published by an earlier refresh."""
    return a_feed(**{"state": state, "digest": b"published", **changes})


def a_row(arrival: Arrival, number: int, **changes: Any) -> StoredDocument:
    """A stored document; by default an archive, attached by its number and settled."""
    values: dict[str, Any] = {
        "id": number,
        "url": arrival.url,
        "final_url": arrival.final_url,
        "role": Role.ARCHIVE,
        "rank": number,
        "detached_at": None,
        "family": arrival.family,
        "site_id": arrival.site_id,
        "links": arrival.links,
        "is_marked": True,
        "is_settled": True,
        "is_uncacheable": False,
        "brought_news": arrival.news,
        "digest": arrival.digest,
        "etag": None,
        "last_modified": None,
        "fetched_at": NOW,
        "checked_at": NOW,
        "parser_version": PARSER_VERSION,
        "body_bytes": arrival.body_bytes,
        "entries": arrival.entries,
        "updated_at": None,
        "marks": "{}",
        "found_by": "",
        "found_in": 0,
    } | changes
    told = {name: changes[name] for name in ("memento", "found_by") if name in changes}
    return StoredDocument(**{"origin": origin_of(values["url"], values["role"], **told), **values})


def a_fresh(arrival: Arrival, **changes: Any) -> FreshDocument:
    values: dict[str, Any] = {
        "arrival": arrival,
        "kind": Kind.PLAIN,
        "older_relation": "",
        "is_tentative": False,
        "fullness": bytes([Fullness.UNKNOWN]) * len(arrival.identities),
    }
    return FreshDocument(**(values | changes))


def an_attempt(url: str, *, wait_seconds: float = HOUR, **changes: Any) -> Attempt:
    """A document that failed just now and waits so many seconds."""
    values: dict[str, Any] = {
        "url": url,
        "reason": "publisher-status",
        "status": 404,
        "attempts": 1,
        "first_at": NOW,
        "last_at": NOW,
        "next_at": NOW + wait_seconds,
    }
    return Attempt(**(values | changes))


def a_basis(
    *,
    feed: StoredFeed | None = None,
    missing: Iterable[Attempt] = (),
    settings: Settings | None = None,
    now: float = NOW,
    offers: Iterable[Any] = (),
    **asked: Any,
) -> Basis:
    """Input of a refresh; `asked` are fields of `RefreshRequest`."""
    return Basis(
        feed=a_feed() if feed is None else feed,
        missing={attempt.url: attempt for attempt in missing},
        failure=None,
        settings=Settings(limits=LIMITS) if settings is None else settings,
        request=RefreshRequest(**asked),
        site_of=site_of,
        now=lambda: now,
        offers=tuple(offers),
    )


def a_subscription(arrival: Arrival | None = None, **changes: Any) -> SubscriptionState:
    """A chain's subscription document; by default it has just arrived with news."""
    values: dict[str, Any] = {
        "arrival": an_arrival(FEED) if arrival is None else arrival,
        "kind": Kind.ARCHIVED,
        "relation": "prev-archive",
        "is_tentative": False,
        "is_confirmed": True,
        "has_changed": True,
        "changed_at": NOW,
        "has_moved": False,
        "has_news": True,
        "stored_digest": None,
        "notes": (),
    }
    return SubscriptionState(**(values | changes))
