"""Which of the systems that tie feed documents together a head speaks (rules R0 to R7).

One recogniser a dialect; the order of `_RECOGNISERS` is rule R0. Everything that they look at is kept with a
stored document too, so a dialect is recognised again without its body.

    recognise(Evidence(links={"prev-archive": "http://o.test/1"}))   # Finding(Kind.ARCHIVED, "prev-archive")

**Flags** (-00, 3; -04). `fh:stateful` and `fh:incremental` are one question asked twice: 1 or true is yes,
0 or false is no, in any case and with any white space around it; anything else counts as absent. Where
several are given and do not agree, the feed is incremental: the other answer takes entries away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from wholefeed.core.model import HistoryElement
from wholefeed.core.terms import Kind, Relation

DEAD: Final = "dead:"
"""Before the relation, in `Navigation.links`: a target that is not to be followed."""

FH_PREV: Final = "fh:prev"
"""The fh:prev element of the drafts -03 and -04, as a key of `Navigation.links`."""

FH_INCREMENTAL: Final = "fh:incremental"
"""What the flags say, as a key of `Navigation.links`: "true", "false", or absent."""

_FLAGS: Final = frozenset({"stateful", "incremental"})
_FLAG_VALUES: Final = {"1": True, "true": True, "0": False, "false": False}
_PAGING: Final = (Relation.NEXT, Relation.FIRST, Relation.LAST)
_BACK: Final = (Relation.PREV, Relation.PREVIOUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the recognisers look at."""

    links: Mapping[str, str]
    """As in `Navigation.links`."""
    is_archive: bool = False
    """Whether it is marked as an archive document (fh:archive)."""
    is_complete: bool = False
    """Whether fh:complete stands in it."""
    is_whole: bool = True
    """Whether the document was received whole."""

    @property
    def is_incremental(self) -> bool | None:
        """What the flags of the drafts say; None where they say nothing."""
        flag = self.links.get(FH_INCREMENTAL)
        return None if flag is None else flag == "true"

    def has(self, *relations: str) -> bool:
        """Whether the document bears one of the relations, be it with a target that cannot be followed."""
        links = self.links
        return any([name in links or DEAD + name in links for name in relations])  # noqa: C419 - they are few


class Finding(NamedTuple):
    """What a document says its feed is."""

    kind: Kind
    relation: str = ""
    """Leads to the older documents of a chain; empty when there is none."""
    is_tentative: bool = False
    """Whether the link counts only if what it leads to is not newer (R4)."""


def recognise(evidence: Evidence) -> Finding:
    """Return the first dialect that fits (R0); a feed that speaks none is R7's."""
    for recogniser in _RECOGNISERS:
        finding = recogniser(evidence)
        if finding is not None:
            return finding
    return Finding(Kind.PLAIN)


def incremental_flag(history: Iterable[HistoryElement]) -> bool | None:
    """Return what the flags of a head say; None where they say nothing (see the module's docstring)."""
    values = {_FLAG_VALUES.get(element.text.strip().lower()) for element in history if element.name in _FLAGS}
    return True if True in values else False if False in values else None


def _complete(evidence: Evidence) -> Finding | None:
    """R1; RFC 5005, section 2: fh:complete, which means nothing on an archive document. R5 is alike."""
    is_all = evidence.is_complete or evidence.is_incremental is False
    if is_all and evidence.is_whole and not evidence.is_archive:
        return Finding(Kind.COMPLETE)
    return None


def _archived(evidence: Evidence) -> Finding | None:
    """R2; RFC 5005, section 4.2: prev-archive, also beside paging links."""
    if evidence.has(Relation.PREV_ARCHIVE):
        return Finding(Kind.ARCHIVED, Relation.PREV_ARCHIVE)
    return None


def _prev_element(evidence: Evidence) -> Finding | None:
    """R4; -03, -04: an fh:prev element implies an incremental feed, unless a flag says no."""
    if evidence.has(FH_PREV) and evidence.is_incremental is not False:
        return Finding(Kind.LEGACY, FH_PREV)
    return None


def _prev_of_a_state(evidence: Evidence) -> Finding | None:
    """R4; -00, 4; PaceFeedState: `prev` of a document that says it is one state of its feed."""
    if evidence.has(Relation.PREV) and (evidence.is_incremental or evidence.has(Relation.THIS)):
        return Finding(Kind.LEGACY, Relation.PREV)
    return None


def _previous_of_an_archive(evidence: Evidence) -> Finding | None:
    """R4; -05, 4: `previous` with `current` or fh:archive. Publishers of pages bear both, too."""
    if evidence.has(Relation.PREVIOUS) and (evidence.is_archive or evidence.has(Relation.CURRENT)):
        return Finding(Kind.LEGACY, Relation.PREVIOUS, is_tentative=evidence.has(*_PAGING))
    return None


def _bare_link(evidence: Evidence) -> Finding | None:
    """R4: `prev` or `previous` where no paging link stands."""
    relation = next((relation for relation in _BACK if evidence.has(relation)), None)
    if relation is not None and not evidence.has(*_PAGING):
        return Finding(Kind.LEGACY, relation, is_tentative=True)
    return None


def _paged(evidence: Evidence) -> Finding | None:
    """R6; RFC 5005, section 3."""
    return Finding(Kind.PAGED) if evidence.has(*_PAGING, *_BACK) else None


_RECOGNISERS: Final[tuple[Callable[[Evidence], Finding | None], ...]] = (
    _complete,  # R1, R5
    _archived,  # R2
    _prev_element,  # R4, in its order
    _prev_of_a_state,
    _previous_of_an_archive,
    _bare_link,
    _paged,  # R6
)
