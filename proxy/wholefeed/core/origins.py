"""Where a stored document comes from, and what follows from that: one row of a table for each source.

    row.origin is Origin.IMPORT
    row.origin.policy.settles                       # whether its publisher speaks by it (R8)
    find_origins(lambda policy: policy.settles)     # all origins of which this is true

Whoever treats a document in a special way because of its source asks this table. A new source is a new row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wholefeed.core.merge import CopyStanding
from wholefeed.core.model import IMPORT_URL, LIST_URL, MEMORY_URL
from wholefeed.core.notes import MementoServed, NoteKind


class Origin(StrEnum):
    """Which source a stored document comes from; the values stand in the store."""

    PUBLISHER = "publisher"
    """Its publisher gave it: the subscription document, or one that a link leads to."""
    ADAPTER = "adapter"
    """Its publisher gave it, and an adapter had asked for it (R26)."""
    MEMENTO = "memento"
    """A web archive has it (R33)."""
    IMPORT = "import"
    """Somebody had kept it (I1), or it is part of a feed that this one continues (I3)."""
    LISTING = "listing"
    """A page of its publisher's lists the entries, of which the proxy wrote it (H7)."""
    MEMORY = "memory"
    """The entries have left other documents, and the proxy wrote it of them (R7)."""

    @property
    def policy(self) -> OriginPolicy:
        """What documents of this origin may do."""
        return POLICIES[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginPolicy:
    """What a document of one origin may do."""

    url_prefix: str
    """How the URLs of all such documents begin; empty for those that stand under a URL of HTTP."""
    settles: bool
    """Whether it is its publisher's word on which entries there are: one that it loses has left the feed, one
    that it holds has not (R8, R25, R35). Where a document without this is on the path nothing is detached."""
    buries: bool
    """Whether its tombstones count (R10)."""
    has_flags: bool
    """Whether it says what its feed is: an archive, complete, incremental (R0 to R3)."""
    has_links: bool
    """Whether its links lead to other documents of the feed."""
    shows_ids: bool
    """Whether its publisher is seen to use the ids in it (R36)."""
    makes_known: bool
    """Whether its entries count as known: a walk may end where all are."""
    holds: bool
    """Whether an entry that stands in it is there, as opposed to: has left, and is remembered (R7, R8)."""
    is_asked_again: bool
    """Whether R13 says when it is asked for again; for the others an attempt does, or nothing."""
    is_replaced: bool
    """Whether its publisher's own document takes its place, be it older, or the same (R33)."""
    leaves_complete: bool
    """Whether it is no part of a feed whose publisher says that it is complete (I1, H7)."""
    stands_behind: bool
    """Whether it stands behind all else, and in no chain. A memento of an earlier subscription document does
    so too, which its URL tells (`StoredDocument.is_capture`)."""
    is_woven: bool
    """Whether the output sorts its entries across documents (R20)."""
    expires: bool
    """Whether it is deleted some time after it was detached; else its owner takes it back (I1)."""
    standing: CopyStanding
    """How its copies of entries compare with those of other origins, before all else (R10)."""
    note: NoteKind | None
    """What its part in a feed is noted as; a note that makes the feed partial keeps it from `complete`."""


POLICIES: Final[dict[Origin, OriginPolicy]] = {
    Origin.PUBLISHER: OriginPolicy(
        url_prefix="",
        settles=True,
        buries=True,
        has_flags=True,
        has_links=True,
        shows_ids=True,
        makes_known=True,
        holds=True,
        is_asked_again=True,
        is_replaced=False,
        leaves_complete=False,
        stands_behind=False,
        is_woven=False,
        expires=True,
        standing=CopyStanding.OWN,
        note=None,
    ),
    Origin.ADAPTER: OriginPolicy(
        url_prefix="",
        settles=True,
        buries=True,
        has_flags=True,
        has_links=True,
        shows_ids=True,
        makes_known=True,
        holds=True,
        is_asked_again=True,
        is_replaced=False,
        leaves_complete=False,
        stands_behind=False,
        is_woven=True,
        expires=True,
        standing=CopyStanding.OWN,
        note=None,
    ),
    Origin.MEMENTO: OriginPolicy(
        url_prefix="",
        settles=False,
        buries=False,
        has_flags=False,
        has_links=True,
        shows_ids=False,
        makes_known=True,
        holds=True,
        is_asked_again=False,
        is_replaced=True,
        leaves_complete=False,
        stands_behind=False,
        is_woven=False,
        expires=True,
        standing=CopyStanding.OWN,
        note=MementoServed,
    ),
    Origin.IMPORT: OriginPolicy(
        url_prefix=IMPORT_URL,
        settles=False,
        buries=False,
        has_flags=False,
        has_links=False,
        shows_ids=False,
        makes_known=False,
        holds=True,
        is_asked_again=False,
        is_replaced=True,
        leaves_complete=True,
        stands_behind=True,
        is_woven=False,
        expires=False,
        standing=CopyStanding.IMPORTED,
        note=None,
    ),
    Origin.LISTING: OriginPolicy(
        url_prefix=LIST_URL,
        settles=False,
        buries=False,
        has_flags=False,
        has_links=False,
        shows_ids=False,
        makes_known=False,
        holds=True,
        is_asked_again=False,
        is_replaced=True,
        leaves_complete=True,
        stands_behind=True,
        is_woven=True,
        expires=True,
        standing=CopyStanding.LISTED,
        note=None,
    ),
    Origin.MEMORY: OriginPolicy(
        url_prefix=MEMORY_URL,
        settles=False,
        buries=False,
        has_flags=False,
        has_links=False,
        shows_ids=True,
        makes_known=True,
        holds=False,
        is_asked_again=False,
        is_replaced=False,
        leaves_complete=False,
        stands_behind=False,
        is_woven=False,
        expires=True,
        standing=CopyStanding.OWN,
        note=None,
    ),
}


def find_origins(is_wanted: Callable[[OriginPolicy], bool]) -> tuple[Origin, ...]:
    """Return the origins whose policies meet a condition."""
    return tuple(origin for origin, policy in POLICIES.items() if is_wanted(policy))
