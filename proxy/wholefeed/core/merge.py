"""The choice of the live copy of each entry (R8 to R10), and deletions (R19; RFC 6721).

Each copy is ranked by itself, so the order in which documents arrive never changes the outcome.
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
    """Return the preferred copy of an identity (R10; RFC 5005, 4.2); None: no copy lives (R8, R19).

    `subscription_updated_at` limits the dates of archives and pages: some generators date every document
    "now". `settled`: the publisher took the identity out of its chain, and no document has had it since.
    Then remembered copies leave, too (R8).
    """
    held = list(copies)
    if settled and all(copy.role is Role.MEMORY for copy in held):
        return None
    if burials:
        held = [copy for copy in held if not _is_buried(copy, burials)]
    return max(held, key=lambda copy: _precedence(copy, subscription_updated_at), default=None)


class CopyStanding(IntEnum):
    """Provenance of a copy; a higher one is preferred."""

    LISTED = 0
    """A page of the publisher: title and link (H6)."""
    IMPORTED = 1
    """An import (I1)."""
    OWN = 2


class Fullness(IntEnum):
    """Completeness of a copy's text (R10)."""

    CUT = 0
    """Ends in a mark of cutting; the replaced copy went on."""
    UNKNOWN = 1
    """No full content, perhaps a mere summary."""
    FULL = 2
    """Full atom:content, content:encoded, content_html or content_text."""


def fullness_of(entry: Entry) -> Fullness:
    # CUT shows only beside the copy before.
    return Fullness.FULL if entry.has_content else Fullness.UNKNOWN


class Copy(NamedTuple):
    key: int
    """Chosen by the caller."""
    updated_at: float | None
    role: Role
    position: int
    """Rank of its document within its role; lower is nearer the subscription document."""
    ordinal: int
    """Place from the top."""
    document_updated_at: float | None
    """For a remembered copy, of the subscription document that held it."""
    fetched_at: float
    generated_at: float | None = None
    """With an adapter's pages (R26): when the publisher generated the document that holds, or last held, the
    copy. None: unknown, or irrelevant."""
    is_collected: bool = False
    """Whether an adapter's page holds it."""
    fullness: int = Fullness.UNKNOWN
    standing: int = CopyStanding.OWN
    has_usual_id: bool = True
    """Whether its post is served under its id (R36)."""


def is_preferred(copy: Copy, other: Copy, *, subscription_updated_at: float | None) -> bool:
    return _precedence(copy, subscription_updated_at) > _precedence(other, subscription_updated_at)


def _precedence(
    copy: Copy, subscription_updated_at: float | None
) -> tuple[int, float, int, bool, float, float, int, int, int, bool]:
    rank = rank_of(copy, subscription_updated_at=subscription_updated_at)
    is_archive = copy.role is Role.ARCHIVE  # precedes a page in the same place
    return (*rank, _NEARNESS[copy.role], -copy.position, -copy.ordinal, is_archive)


_NEARNESS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: -1, Role.ARCHIVE: -2, Role.PAGE: -2}

Rank = tuple[int, float, int, bool, float, float]
"""R10's key; places decide between equal ones."""


def rank_of(copy: Copy, *, subscription_updated_at: float | None) -> Rank:
    document = copy.document_updated_at
    if document is not None and copy.is_collected:
        document = min(document, copy.fetched_at)
    elif document is not None and copy.role in _CLAMPED and subscription_updated_at is not None:
        document = min(document, subscription_updated_at)
    instant = believable_instant(copy.updated_at, copy.fetched_at)
    return rank_copy(
        instant,
        copy.fullness,
        document,
        copy.generated_at,
        standing=copy.standing,
        has_usual_id=copy.has_usual_id,
    )


# R10: the date of these counts as at most the subscription document's.
_CLAMPED: Final = frozenset({Role.ARCHIVE, Role.PAGE})


def rank_copy(
    updated_at: float | None,
    fullness: int,
    document_updated_at: float | None,
    made_at: float | None,
    *,
    standing: int = CopyStanding.OWN,
    has_usual_id: bool = True,
) -> Rank:
    """Return R10's key; callers pass only instants that count."""
    return (
        # First: outside the feed's own documents, dates are not to be trusted.
        standing,
        _UNDATED if updated_at is None else updated_at,
        fullness,
        has_usual_id,
        _UNDATED if document_updated_at is None else document_updated_at,
        _UNDATED if made_at is None else made_at,
    )


_UNDATED: Final = float("-inf")


def believable_instant(updated_at: float | None, fetched_at: float) -> float | None:
    """Return the update instant; None if it is over a day after the fetch (R10)."""
    return None if updated_at is None or updated_at > fetched_at + DAY_SECONDS else updated_at


# Entries of a document that replaces another one (R7, R8, R10)


class ComparedEntry(NamedTuple):
    identity: EntryId
    updated_at: float | None
    size: int
    """Bytes."""
    fullness: int | None
    """None: unknown."""


@dataclass(frozen=True, slots=True)
class Replacement:
    present: dict[EntryId, int] = field(default_factory=dict)
    """Fullness of each entry's replacement; `OTHER`: another revision."""
    gone: list[EntryId] = field(default_factory=list)
    """Entries without a replacement."""
    fuller: list[EntryId] = field(default_factory=list)
    """Entries fuller, or perhaps fuller, than their replacements."""
    needs_texts: bool = False
    """Whether a comparison of texts must show the cuts."""


OTHER: Final = Fullness.FULL + 1
"""Above every `Fullness`."""


def replacement(old: Iterable[ComparedEntry], new: Iterable[ComparedEntry]) -> Replacement:
    """Compare the old and the new entries of a document (R7, R8, R10)."""
    latest: dict[EntryId, ComparedEntry] = {}
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
    # Cuts make many entries smaller at once, so texts are compared if half of the common ones shrank. If some
    # were cut before, texts show whether they still are.
    if was_cut or (suspects and 2 * smaller >= common):
        return replace(found, fuller=found.fuller + suspects, needs_texts=True)
    return found


def _revision(said: ComparedEntry) -> tuple[float, int]:
    instant = _UNDATED if said.updated_at is None else said.updated_at
    return instant, Fullness.UNKNOWN if said.fullness is None else said.fullness


# Deletions by a publisher (R19; RFC 6721)


class Burial(NamedTuple):
    when_at: float
    place: CopyPlace


def is_buried(instant: float | None, place: CopyPlace, burials: Sequence[Burial]) -> bool:
    """Return whether a tombstone deletes a copy (R19; RFC 6721).

    `instant` is the update instant that counts; without one, the place decides.
    """
    # A tombstone buries dated copies up to its own instant, and undated ones in its own document or older
    # ones.
    return any(
        instant <= burial.when_at if instant is not None else place >= burial.place for burial in burials
    )


def _is_buried(copy: Copy, burials: Sequence[Burial]) -> bool:
    instant = believable_instant(copy.updated_at, copy.fetched_at)
    return is_buried(instant, place_of(copy.role, copy.position), burials)


class CopyPlace(NamedTuple):
    """The place of a document in its feed; ascends from new to old."""

    role_class: int
    position: int


def place_of(role: Role, position: int) -> CopyPlace:
    return CopyPlace(_CLASS[role], position)


_CLASS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}
FALLEN_OUT: Final = CopyPlace(_CLASS[Role.SUBSCRIPTION], 1 << 62)
"""For tombstones that left their document: behind the subscription document, before all others."""


# Removals by the owner of a proxy (I2)


FORGOTTEN: Final = CopyPlace(-1, 0)
"""For removals: before all documents, so that every undated copy is buried."""
FORGOTTEN_REF: Final = "urn:wholefeed:forgotten"
"""`ref` of a removal's tombstone. Readers do not get it: the publisher deleted nothing."""


def forgotten_at(copies: Iterable[tuple[float | None, float]], *, now: float) -> float:
    """Return the instant of a removal; copies with a later update live (I2).

    It is the latest update instant that counts, else `now`. `copies` are pairs of update instant and time of
    fetch.
    """
    instants = (believable_instant(updated_at, fetched_at) for updated_at, fetched_at in copies)
    return max((each for each in instants if each is not None), default=now)


def written(tombstones: Sequence[Tombstone]) -> list[bytes]:
    """Return a head's lines for tombstones: one per identity, newest first."""
    newest: dict[bytes, Tombstone] = {}
    for tombstone in sorted(tombstones, key=lambda each: (-each.when_at, each.ref)):
        if tombstone.ref:
            newest.setdefault(tombstone.identity, tombstone)
    return [
        f'<at:deleted-entry ref={quoteattr(each.ref)} when="{_rfc3339(each.when_at)}"/>\n'.encode()
        for each in list(newest.values())[:MAX_PASSED_ON]
    ]


MAX_PASSED_ON: Final = 1000
"""Other documents' tombstones that a head repeats, the newest."""


def _rfc3339(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")
