"""The feeds that need a person, the reasons, and the acts that help.

    need = find_need(troubles, now)            # None: the feed gets along by itself
    said = describe_need(troubles, need, url=url, site=site, is_address_known=False)

A failure that passes by itself needs nobody, so a feed is named only after a week of failures, or a month
with documents missing. The proxy itself follows permanent redirects (R25).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum, auto
from heapq import nsmallest
from typing import Final, NamedTuple

from wholefeed.core.model import State
from wholefeed.core.notes import MementoServed, NewAddress
from wholefeed.core.saved.choosing import url_keys
from wholefeed.core.slugs import failure_in_words, may_pass
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS, format_rfc3339
from wholefeed.core.text.urls import is_http, join_parts, split
from wholefeed.core.words import count_noun, day_of

PARTIAL_SECONDS: Final = 30 * DAY_SECONDS
_GONE: Final = 410
_NOT_FOUND: Final = 404


class Need(Enum):
    """Reasons, the most urgent first."""

    GONE = auto()
    FAILED = auto()
    MOVED = auto()
    PARTIAL = auto()


class Help(Enum):
    REFRESH = auto()
    SITE = auto()
    """Look for the feed at `NeedWords.address`, its site."""
    MOVE = auto()
    """See the feed at `NeedWords.address`, its new address."""
    CONTINUE = auto()
    """Let the known feed at `NeedWords.address` continue this one (I3)."""
    CAUSE = auto()
    """See the missing documents on the feed's page."""


class FeedTroubles(NamedTuple):
    """Facts about a feed; times are epoch seconds."""

    feed: int
    state: str
    failing_since: float | None = None
    """First of the failures in a row of the subscription document; None: the last request succeeded."""
    reason: str | None = None
    status: int | None = None
    missing: int = 0
    missing_since: float | None = None
    missing_reason: str | None = None
    """None if the missing documents have several."""
    missing_status: int | None = None
    new_address: str = ""
    """From `read_new_address`."""


def read_new_address(notes: str, *own: str) -> str:
    """Return the address that the note `NewAddress` has; empty: none, or one of the feed's `own` URLs.

    `notes` is JSON. Spelling does not count, as in H6.
    """
    named: dict[str, str] = next((each for each in json.loads(notes) if each["code"] == NewAddress.code), {})
    address: str = named.get("href", "")  # earlier releases stored none
    known = frozenset[str]().union(*map(url_keys, own))
    return address if is_http(address) and known.isdisjoint(url_keys(address)) else ""


class FeedNeed(NamedTuple):
    need: Need
    since: float
    """Epoch seconds; 0: unknown."""


def find_need(troubles: FeedTroubles, now: float) -> FeedNeed | None:
    """Return why a feed needs a person; None: not, or not yet."""
    failing_since, missing_since = troubles.failing_since, troubles.missing_since
    is_failed = failing_since is not None and now - failing_since >= WEEK_SECONDS
    if failing_since is not None:
        # 410 is said on purpose (RFC 9110, 15.5.11); 404 may be a fault of a day.
        if troubles.status == _GONE or (troubles.status == _NOT_FOUND and is_failed):
            return FeedNeed(Need.GONE, failing_since)
        if is_failed:
            return FeedNeed(Need.FAILED, failing_since)
    if troubles.new_address:
        return FeedNeed(Need.MOVED, 0.0)
    is_served = troubles.missing_reason == MementoServed.slug  # nobody has the publisher's own copies
    if troubles.state == State.PARTIAL and missing_since is not None and not is_served:
        return FeedNeed(Need.PARTIAL, missing_since) if now - missing_since >= PARTIAL_SECONDS else None
    return None


_URGENCY: Final = {need: place for place, need in enumerate(Need)}


def choose_needs(needs: Mapping[int, FeedNeed], most: int) -> list[int]:
    """Return the most urgent first, then those in need for the shortest time."""
    return nsmallest(most, needs, key=lambda feed: (_URGENCY[needs[feed].need], -needs[feed].since, feed))


class NeedWords(NamedTuple):
    sentence: str
    help: Help
    address: str = ""


def describe_need(
    troubles: FeedTroubles, need: FeedNeed, *, url: str, site: str, is_address_known: bool
) -> NeedWords:
    """Return one sentence about a need, and the act that helps.

    `site` is empty if unknown. `is_address_known`: the new address is a feed here.
    """
    day = day_of(format_rfc3339(need.since))
    look_at = site if is_http(site) else join_parts(split(url)._replace(path="/", query=None))
    match need.need:
        case Need.GONE:
            said = (
                "The publisher says that this feed is gone for good; its entries stay here."
                if troubles.status == _GONE
                else f"Since {day} the publisher has nothing at this address; the feed's entries stay here."
            )
            return NeedWords(said, Help.SITE, look_at)
        case Need.FAILED:
            reason, status = troubles.reason or "", troubles.status
            why = failure_in_words(reason, status)
            act = Help.REFRESH if may_pass(reason, status) else Help.SITE
            return NeedWords(f"Not sent since {day}: {why}.", act, look_at if act is Help.SITE else "")
        case Need.MOVED:
            act = Help.CONTINUE if is_address_known else Help.MOVE
            said = "The publisher names a new address for this feed, to which no redirect leads."
            return NeedWords(said, act, troubles.new_address)
        case Need.PARTIAL:
            return _describe_missing(troubles, day)


def _describe_missing(troubles: FeedTroubles, day: str) -> NeedWords:
    reason, status = troubles.missing_reason, troubles.missing_status
    why = f": {failure_in_words(reason, status)}" if reason else ""
    documents = count_noun(
        troubles.missing, "document with older entries is", "documents with older entries are"
    )
    passes = reason != "limit" and (not reason or may_pass(reason, status))
    return NeedWords(f"Since {day} {documents} missing{why}.", Help.REFRESH if passes else Help.CAUSE)
