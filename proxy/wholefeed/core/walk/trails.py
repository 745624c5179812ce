"""Which links a walk follows, and what it makes of what they lead to (rules R2, R4, R6).

A chain is one trail: the relation that leads to the older document, from the subscription document on.
A paged feed can be entered anywhere and takes several, each from the document that was asked for:

    first, then next, next …      from the first page on, mostly as far as the document asked for
    previous, previous …          where there is no way to the first page but this one
    next, next …                  to the last page

Each ends where it meets what another has collected. The relation never changes on a trail, whatever else
the documents bear: on a second page `prev` leads to newer entries (R0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from wholefeed.core.links.classify import dead_link, older_target
from wholefeed.core.notes import Note
from wholefeed.core.terms import Relation
from wholefeed.core.text.urls import same_document

_SYNONYMS: Final = {Relation.PREVIOUS: Relation.PREV}
"""RFC 5005 says `previous`, the registry of relations `prev`; among pages they are one."""


class Span(NamedTuple):
    """The oldest and the newest instant among a document's entries."""

    oldest_at: float
    newest_at: float

    def is_newer_than(self, other: Span) -> bool:
        """Whether the entries are newer as a whole; a late update of an old one does not make them so."""
        return self.newest_at > other.newest_at and self.oldest_at >= other.oldest_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """One way through the documents of a feed."""

    relation: str
    """Leads from each document to the next."""
    first_relation: str = ""
    """Leads from the subscription document to the next, where that is another relation."""
    is_paged: bool = False
    """Whether the documents are pages: circles and missing documents at the end are the end (R6, R17)."""
    is_tentative: bool = False
    """Whether it counts only if what it leads to is not newer than the subscription document (R4)."""
    is_closing: bool = False
    """Whether to stop at the first page that brought nothing new: what is behind it was collected before."""

    def target(self, links: Mapping[str, str], *, is_first: bool = False) -> str | None:
        """Return where the trail leads from a document with these links; None at its end."""
        return next(filter(None, (older_target(links, name) for name in self._names(is_first))), None)

    def dead_end(self, links: Mapping[str, str], url: str, *, is_first: bool = False) -> Note | None:
        """Return a note when there is a link, but only one that cannot be followed."""
        return next(filter(None, (dead_link(links, name, url) for name in self._names(is_first))), None)

    @property
    def is_backward(self) -> bool:
        """Whether it leads towards the first page."""
        return self.relation == Relation.PREVIOUS

    def _names(self, is_first: bool) -> tuple[str, ...]:
        name = self.first_relation if is_first and self.first_relation else self.relation
        synonym = _SYNONYMS.get(Relation(name)) if self.is_paged else None
        return (name,) if synonym is None else (name, synonym)


def page_trails(
    links: Mapping[str, str],
    names: Iterable[str],
    *,
    is_closing: bool = False,
    is_known: Callable[[str], bool] = lambda _url: False,
) -> tuple[Trail, ...]:
    """Return the trails through a paged feed, in their order (R6; RFC 5005, section 3).

    Args:
        links: Of the document that was asked for, as in `Navigation.links`.
        names: The URLs that it is known by.
        is_closing: Whether the whole feed was collected before.
        is_known: Whether something is stored under a URL. When all was collected and nothing is stored
            under the URL of the first page, that one is the document asked for under another name.
    """
    own = tuple(names)

    def leads_away(relation: str) -> bool:
        trail = Trail(relation=relation, is_paged=True)
        target = trail.target(links)
        if target is None:
            return trail.dead_end(links, "") is not None
        return not any(same_document(target, name) for name in own)

    trails: list[Trail] = []

    def add(relation: str, first_relation: str = "") -> None:
        trails.append(
            Trail(relation=relation, first_relation=first_relation, is_paged=True, is_closing=is_closing)
        )

    if leads_away(Relation.FIRST) and (not is_closing or is_known(links.get(Relation.FIRST, ""))):
        add(Relation.NEXT, Relation.FIRST)
    if leads_away(Relation.PREVIOUS):
        add(Relation.PREVIOUS)
    if leads_away(Relation.NEXT):
        add(Relation.NEXT)
    if not trails and leads_away(Relation.LAST) and not is_closing:
        add(Relation.PREVIOUS, Relation.LAST)
    return tuple(trails)


def first_ascent(spans: Sequence[Span | None]) -> int | None:
    """Return where pages that should get older get newer instead; None where they do not.

    Args:
        spans: Of documents of which each is the `next` of the one before; None where no dates are known.

    Returns:
        The index of the first document that is newer than the one before it.
    """
    steps = enumerate(pairwise(spans), start=1)
    return next((n for n, (one, two) in steps if one and two and two.is_newer_than(one)), None)


def is_ascending(spans: Sequence[Span | None]) -> bool:
    """Return whether pages mostly get newer along `next`: then the last one has the newest entries."""
    pairs = [(one, two) for one, two in pairwise(spans) if one and two]
    ups = sum(two.is_newer_than(one) for one, two in pairs)
    downs = sum(one.is_newer_than(two) for one, two in pairs)
    return ups > downs
