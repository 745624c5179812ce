"""Which copy of an entry is live (rules R8 to R10), and which are deleted (R19; RFC 6721).

The same entry can stand in many documents of a chain, and as a remembered copy of an earlier
subscription document. Each copy is judged by itself, so the outcome depends on what the copies are
and never on the order in which their documents arrived.

    live = choose([Copy(...), Copy(...)], subscription_updated_at=feed_updated_at, settled=False)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from wholefeed.core.model import Role, Tombstone
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.markup import quoteattr


def choose(
    copies: Iterable[Copy],
    *,
    subscription_updated_at: float | None,
    settled: bool,
    burials: Sequence[Burial] = (),
) -> Copy | None:
    """Return the copy that stays (R10; RFC 5005, 4.2), or None when none does (R8, R19).

    Args:
        copies: The copies of one identity in attached documents.
        subscription_updated_at: Update instant of the subscription document; the date of an archive or a
            page counts as at most this, because some generators date every document "now".
        settled: Whether the publisher took the identity out of its chain, and no document has held it since:
            its remembered copies leave with it (R8).
        burials: The tombstones of the identity (R19).
    """
    held = list(copies)
    if settled and all(copy.role is Role.MEMORY for copy in held):
        return None
    if burials:
        held = [copy for copy in held if not _is_buried(copy, burials)]
    return max(held, key=lambda copy: _precedence(copy, subscription_updated_at), default=None)


class Copy(NamedTuple):
    """One copy of an entry, and what is known of the document it stands in."""

    key: int
    """What the caller knows it by."""
    updated_at: float | None
    role: Role
    position: int
    """Rank of its document among those of its role; lower is nearer the subscription document."""
    ordinal: int
    """Place in its document, counted from the top."""
    document_updated_at: float | None
    """Of a remembered copy: that of the subscription document it stood in."""
    fetched_at: float
    generated_at: float | None = None
    """In a feed with pages that an adapter asked for (R26): when its document was made by the publisher."""
    is_collected: bool = False
    """Whether it stands on such a page."""


def is_preferred(copy: Copy, other: Copy, *, subscription_updated_at: float | None) -> bool:
    """Return whether R10 prefers a copy to another one of the same identity."""
    return _precedence(copy, subscription_updated_at) > _precedence(other, subscription_updated_at)


def _precedence(
    copy: Copy, subscription_updated_at: float | None
) -> tuple[float, float, float, int, int, int, bool]:
    instant, document = dates_of(copy, subscription_updated_at=subscription_updated_at)
    is_archive = copy.role is Role.ARCHIVE  # between an archive document and a page in one place
    made_at = _UNDATED if copy.generated_at is None else copy.generated_at
    return (instant, document, made_at, _NEARNESS[copy.role], -copy.position, -copy.ordinal, is_archive)


_NEARNESS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: -1, Role.ARCHIVE: -2, Role.PAGE: -2}

Dates = tuple[float, float]
"""What R10 compares before it asks where a copy stands."""


def dates_of(copy: Copy, *, subscription_updated_at: float | None) -> Dates:
    """Return the dates of a copy and its document, as far as they count."""
    document = copy.document_updated_at
    if document is not None and copy.is_collected:
        document = min(document, copy.fetched_at)
    elif document is not None and copy.role in _CLAMPED and subscription_updated_at is not None:
        document = min(document, subscription_updated_at)
    return comparable(counted_instant(copy.updated_at, copy.fetched_at), document)


_CLAMPED: Final = frozenset({Role.ARCHIVE, Role.PAGE})
"""Documents whose date counts as at most their subscription document's (R10)."""


def comparable(updated_at: float | None, document_updated_at: float | None) -> Dates:
    """Return instants that count, a copy's and its document's, to be compared: a dated copy goes first."""
    return (
        _UNDATED if updated_at is None else updated_at,
        _UNDATED if document_updated_at is None else document_updated_at,
    )


_UNDATED: Final = float("-inf")


def counted_instant(updated_at: float | None, fetched_at: float) -> float | None:
    """Return the update instant that counts: none when it is over a day after the fetch (R10)."""
    return None if updated_at is None or updated_at > fetched_at + DAY_SECONDS else updated_at


# What a publisher has deleted (R19; RFC 6721)


class Burial(NamedTuple):
    """A tombstone as the choice among copies sees it."""

    when_at: float
    place: Place


def is_buried(instant: float | None, place: Place, burials: Sequence[Burial]) -> bool:
    """Return whether a copy is deleted by one of the tombstones of its identity (R19; RFC 6721).

    A tombstone buries the copies whose update instant is not after its own. A copy without one is buried
    where it stands in the tombstone's own document or in an older one.

    Args:
        instant: The update instant that counts; None where there is none.
        place: Of its document.
        burials: The tombstones of its identity.
    """
    return any(
        instant <= burial.when_at if instant is not None else place >= burial.place for burial in burials
    )


def _is_buried(copy: Copy, burials: Sequence[Burial]) -> bool:
    instant = counted_instant(copy.updated_at, copy.fetched_at)
    return is_buried(instant, place_of(copy.role, copy.position), burials)


class Place(NamedTuple):
    """Where a document stands in its feed; ascending from new to old."""

    role_class: int
    position: int


def place_of(role: Role, position: int) -> Place:
    """Return where a document of this role and rank stands."""
    return Place(_CLASS[role], position)


_CLASS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}
FALLEN_OUT: Final = Place(_CLASS[Role.SUBSCRIPTION], 1 << 62)
"""Of a tombstone that no document bears any more: behind the subscription document, before all others."""


def written(tombstones: Sequence[Tombstone]) -> list[bytes]:
    """Return the tombstones as a head passes them on, each on a line: one an identity, the newest first."""
    newest: dict[bytes, Tombstone] = {}
    for tombstone in sorted(tombstones, key=lambda each: (-each.when_at, each.ref)):
        if tombstone.ref:
            newest.setdefault(tombstone.identity, tombstone)
    return [
        f'<at:deleted-entry ref={quoteattr(each.ref)} when="{_rfc3339(each.when_at)}"/>\n'.encode()
        for each in list(newest.values())[:MAX_PASSED_ON]
    ]


MAX_PASSED_ON: Final = 1000
"""Tombstones, the newest, that the head repeats when they do not stand in the subscription document."""


def _rfc3339(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")
