"""Policies for stored documents, one row per source.

All special treatment of a source asks this table.
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
    """The source of a stored document; the store holds the values."""

    PUBLISHER = "publisher"
    """The subscription document, or a linked one."""
    ADAPTER = "adapter"
    """The publisher, asked by an adapter (R26)."""
    MEMENTO = "memento"
    """A web archive (R33)."""
    IMPORT = "import"
    """A person's document (I1), or a continued feed (I3)."""
    LISTING = "listing"
    """Written by the proxy from a publisher's page (H7)."""
    MEMORY = "memory"
    """Written by the proxy from departed entries (R7)."""

    @property
    def policy(self) -> OriginPolicy:
        return POLICIES[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginPolicy:
    url_prefix: str
    """Prefix of their URLs; empty: HTTP URLs."""
    settles: bool
    """Whether it proves the publisher's entries: an entry that it loses has left the feed, one that it holds
    has not (R8, R25, R35). On a path with a document without this, nothing is detached."""
    buries: bool
    """Whether its tombstones count (R10)."""
    has_flags: bool
    """Whether its flags count: archive, complete, incremental (R0 to R3)."""
    has_links: bool
    shows_ids: bool
    """Whether it proves that the publisher uses its ids (R36)."""
    makes_known: bool
    """Whether its entries count as known: a walk may end where all are."""
    holds: bool
    """Whether its entries are present, not departed (R7, R8)."""
    is_asked_again: bool
    """Whether R13 decides when to validate it; else the next attempt does, or nothing."""
    is_replaced: bool
    """Whether the publisher's document replaces it, even an older or equal one (R33)."""
    leaves_complete: bool
    """Whether a complete feed excludes it (I1, H7)."""
    stands_behind: bool
    """Whether it stands behind all else, outside chains. Mementos of subscription documents do, too
    (`StoredDocument.is_capture`)."""
    is_woven: bool
    """Whether the output sorts its entries across documents (R20)."""
    expires: bool
    """Whether it is deleted some time after it is detached; else by its owner (I1)."""
    standing: CopyStanding
    """Rank of its copies, before all else (R10)."""
    note: NoteKind | None
    """Note on its use; a partial one prevents `complete`."""
    words: str
    """Where its entries come from, for people; empty: the publisher's feed."""


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
        words="",
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
        words="",
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
        words="from a web archive",
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
        words="imported",
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
        words="listed on the publisher's pages",
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
        words="remembered by this proxy",
    ),
}


def find_origins(is_wanted: Callable[[OriginPolicy], bool]) -> tuple[Origin, ...]:
    return tuple(origin for origin, policy in POLICIES.items() if is_wanted(policy))
