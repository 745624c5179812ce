"""Which copy of an entry is live (rules R8 to R10), and which are deleted (R19; RFC 6721).

The same entry can stand in many documents of a chain, and as a remembered copy of an earlier
subscription document. Each copy is judged by itself, so the outcome depends on what the copies are
and never on the order in which their documents arrived.

    live = choose([Copy(...), Copy(...)], subscription_updated_at=feed_updated_at, settled=False)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import Final, NamedTuple

from wholefeed.core.model import Entry, EntryId, Role, Tombstone
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


class CopyStanding(IntEnum):
    """Whose document a copy stands in: an earlier one here gives way to any later one."""

    LISTED = 0
    """What a page of the publisher's lists: a title and a link (H6)."""
    IMPORTED = 1
    """Somebody had kept it (I1)."""
    OWN = 2


class Fullness(IntEnum):
    """How much of an entry's text a copy has, as far as that is known (R10)."""

    CUT = 0
    """It ends in a mark of cutting where the copy that it replaced went on."""
    UNKNOWN = 1
    """It has no full content: its summary may be all that there is."""
    FULL = 2
    """It has full content: atom:content, content:encoded, content_html or content_text."""


def fullness_of(entry: Entry) -> Fullness:
    """Return what an entry tells by itself: what was cut shows only beside the copy before."""
    return Fullness.FULL if entry.has_content else Fullness.UNKNOWN


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
    """In a feed with pages that an adapter asked for (R26): when its document was made by the publisher; of a
    remembered copy that of the document it stood in. None: that is not known, or does not count."""
    is_collected: bool = False
    """Whether it stands on such a page."""
    fullness: int = Fullness.UNKNOWN
    """As a `Fullness`."""
    standing: int = CopyStanding.OWN
    """As a `CopyStanding`."""
    has_usual_id: bool = True
    """Whether it has the id that its post is served under (R36)."""


def is_preferred(copy: Copy, other: Copy, *, subscription_updated_at: float | None) -> bool:
    """Return whether R10 prefers a copy to another one of the same identity."""
    return _precedence(copy, subscription_updated_at) > _precedence(other, subscription_updated_at)


def _precedence(
    copy: Copy, subscription_updated_at: float | None
) -> tuple[int, float, int, bool, float, float, int, int, int, bool]:
    rank = rank_of(copy, subscription_updated_at=subscription_updated_at)
    is_archive = copy.role is Role.ARCHIVE  # between an archive document and a page in one place
    return (*rank, _NEARNESS[copy.role], -copy.position, -copy.ordinal, is_archive)


_NEARNESS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: -1, Role.ARCHIVE: -2, Role.PAGE: -2}

Rank = tuple[int, float, int, bool, float, float]
"""What R10 compares before it asks where a copy stands; first of all whose document it stands in."""


def rank_of(copy: Copy, *, subscription_updated_at: float | None) -> Rank:
    """Return what a copy and its document say of themselves, as far as it counts."""
    document = copy.document_updated_at
    if document is not None and copy.is_collected:
        document = min(document, copy.fetched_at)
    elif document is not None and copy.role in _CLAMPED and subscription_updated_at is not None:
        document = min(document, subscription_updated_at)
    instant = counted_instant(copy.updated_at, copy.fetched_at)
    return rank_copy(
        instant,
        copy.fullness,
        document,
        copy.generated_at,
        standing=copy.standing,
        has_usual_id=copy.has_usual_id,
    )


_CLAMPED: Final = frozenset({Role.ARCHIVE, Role.PAGE})
"""Documents whose date counts as at most their subscription document's (R10)."""


def rank_copy(
    updated_at: float | None,
    fullness: int,
    document_updated_at: float | None,
    made_at: float | None,
    *,
    standing: int = CopyStanding.OWN,
    has_usual_id: bool = True,
) -> Rank:
    """Return what is to be compared, of instants that count: a dated copy goes first.

    What is no document of the feed goes behind all that are, whatever it says: its dates are anybody's.
    """
    return (
        standing,
        _UNDATED if updated_at is None else updated_at,
        fullness,
        has_usual_id,
        _UNDATED if document_updated_at is None else document_updated_at,
        _UNDATED if made_at is None else made_at,
    )


_UNDATED: Final = float("-inf")


def counted_instant(updated_at: float | None, fetched_at: float) -> float | None:
    """Return the update instant that counts: none when it is over a day after the fetch (R10)."""
    return None if updated_at is None or updated_at > fetched_at + DAY_SECONDS else updated_at


# What stands in a document in the place of what stood there (R7, R8, R10)


class StatedDeletion(NamedTuple):
    """An entry of a document, as far as it is compared with what stands in its place later."""

    identity: EntryId
    updated_at: float | None
    size: int
    """In bytes."""
    fullness: int | None
    """None: nobody has looked."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """What becomes of the entries of a document when another one takes its place."""

    present: dict[EntryId, int] = field(default_factory=dict)
    """The fullness of what stands in the place of each; `OTHER` where that is another revision."""
    gone: list[EntryId] = field(default_factory=list)
    """Those in whose place nothing stands."""
    fuller: list[EntryId] = field(default_factory=list)
    """Those that are fuller than what stands in their place, or may be."""
    needs_texts: bool = False
    """Whether the texts have to be compared, to know what was cut."""


OTHER: Final = Fullness.FULL + 1
"""Nothing is fuller."""


def replacement(old: Iterable[StatedDeletion], new: Iterable[StatedDeletion]) -> Replacement:
    """Compare what stood in a document with what stands there now.

    The texts are asked for only where half of the entries in common have become smaller, as they do when
    they are cut, or where some were cut before: what says the same still is.
    """
    latest: dict[EntryId, StatedDeletion] = {}
    for each in new:
        if each.identity not in latest or _revision(each) > _revision(latest[each.identity]):
            latest[each.identity] = each
    found = Replacement()
    smaller = common = 0
    suspects = list[EntryId]()
    was_cut = False
    for was in old:
        now = latest.get(was.identity)
        if now is None:
            found.gone.append(was.identity)
            continue
        fullness, before = _revision(now)[1], Fullness.FULL if was.fullness is None else was.fullness
        is_same = now.updated_at == was.updated_at
        common += 1
        smaller += now.size < was.size
        was_cut |= before == Fullness.CUT
        found.present[was.identity] = fullness if is_same else OTHER
        if is_same and before > fullness:
            found.fuller.append(was.identity)
        elif is_same and before > Fullness.CUT and now.size < was.size:
            suspects.append(was.identity)
    if was_cut or (suspects and 2 * smaller >= common):
        return replace(found, fuller=found.fuller + suspects, needs_texts=True)
    return found


def _revision(said: StatedDeletion) -> tuple[float, int]:
    instant = _UNDATED if said.updated_at is None else said.updated_at
    return instant, Fullness.UNKNOWN if said.fullness is None else said.fullness


# What a publisher has deleted (R19; RFC 6721)


class Burial(NamedTuple):
    """A tombstone as the choice among copies sees it."""

    when_at: float
    place: CopyPlace


def is_buried(instant: float | None, place: CopyPlace, burials: Sequence[Burial]) -> bool:
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


class CopyPlace(NamedTuple):
    """Where a document stands in its feed; ascending from new to old."""

    role_class: int
    position: int


def place_of(role: Role, position: int) -> CopyPlace:
    """Return where a document of this role and rank stands."""
    return CopyPlace(_CLASS[role], position)


_CLASS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}
FALLEN_OUT: Final = CopyPlace(_CLASS[Role.SUBSCRIPTION], 1 << 62)
"""Of a tombstone that no document bears any more: behind the subscription document, before all others."""


# What the owner of a proxy has removed (I2)


FORGOTTEN: Final = CopyPlace(-1, 0)
"""Of the removal of one entry: before all documents, so that an undated copy is buried wherever it stands."""
FORGOTTEN_REF: Final = "urn:wholefeed:forgotten"
"""The `ref` of a tombstone that is such a removal. Nobody is sent it: the publisher has deleted nothing."""


def forgotten_at(copies: Iterable[tuple[float | None, float]], *, now: float) -> float:
    """Return the instant of the tombstone that removes an entry: a copy with a later update lives (I2).

    That is the latest update among the copies that are stored. If none has an update instant, it is the time
    of the removal.

    Args:
        copies: The update instant of each copy, and when its document was fetched; epoch seconds.
        now: Epoch seconds.
    """
    instants = (counted_instant(updated_at, fetched_at) for updated_at, fetched_at in copies)
    return max((each for each in instants if each is not None), default=now)


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
