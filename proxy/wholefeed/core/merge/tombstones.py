"""What a publisher has deleted (rule R19; RFC 6721).

A tombstone buries the copies of its entry whose update instant is not after its own. A copy without one is
buried where it stands in the tombstone's own document or in an older one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from wholefeed.core.model import Tombstone
from wholefeed.core.terms import Role
from wholefeed.core.text.markup import quoteattr

MAX_PASSED_ON: Final = 1000
"""Tombstones, the newest, that the head repeats when they do not stand in the subscription document."""

_CLASS: Final = {Role.SUBSCRIPTION: 0, Role.MEMORY: 1, Role.ARCHIVE: 2, Role.PAGE: 2}


class Place(NamedTuple):
    """Where a document stands in its feed; ascending from new to old."""

    role_class: int
    position: int


FALLEN_OUT: Final = Place(_CLASS[Role.SUBSCRIPTION], 1 << 62)
"""Of a tombstone that no document bears any more: behind the subscription document, before all others."""


class Burial(NamedTuple):
    """A tombstone as the choice among copies sees it."""

    when_at: float
    place: Place


def place_of(role: Role, position: int) -> Place:
    """Return where a document of this role and rank stands."""
    return Place(_CLASS[role], position)


def is_buried(instant: float | None, place: Place, burials: Sequence[Burial]) -> bool:
    """Return whether a copy is deleted.

    Args:
        instant: The update instant that counts; None where there is none.
        place: Of its document.
        burials: The tombstones of its identity.
    """
    return any(
        instant <= burial.when_at if instant is not None else place >= burial.place for burial in burials
    )


def written(tombstones: Sequence[Tombstone]) -> bytes:
    """Return the tombstones as a head passes them on: one an identity, the newest first."""
    newest: dict[bytes, Tombstone] = {}
    for tombstone in sorted(tombstones, key=lambda each: (-each.when_at, each.ref)):
        if tombstone.ref:
            newest.setdefault(tombstone.identity, tombstone)
    return b"".join(
        f'<at:deleted-entry ref={quoteattr(each.ref)} when="{_rfc3339(each.when_at)}"/>\n'.encode()
        for each in list(newest.values())[:MAX_PASSED_ON]
    )


def _rfc3339(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")
