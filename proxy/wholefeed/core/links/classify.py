"""What kind of feed a document belongs to, and where its links lead (rules R0 to R7, R11, R12).

Every dialect ends in one answer, the `Navigation`; `wholefeed.core.links.dialects` recognises them.

    navigation = classify(document, http_links)
    match subscription_hint(asked_url, document.url, navigation):
        case Follow(url): ...     # dereference `current`, once
        case Forward(url): ...    # an archive document; go forward while there is a URL
        case Serve(): ...         # it is the subscription document
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wholefeed.core.links.dialects import (
    DEAD,
    FH_INCREMENTAL,
    FH_PREV,
    Evidence,
    Finding,
    incremental_flag,
    recognise,
)
from wholefeed.core.links.http_links import header_links
from wholefeed.core.model import FeedDocument, Link
from wholefeed.core.notes import DeadChainLink, Note
from wholefeed.core.reading_notes import BadLink, ExtraLink
from wholefeed.core.terms import Family, Kind, Relation
from wholefeed.core.text.redact import safe_url
from wholefeed.core.text.urls import is_fetchable, resolve, same_document

MAX_LINKS_PER_RELATION: Final = 20
"""Links of one relation that are looked at; a hostile head can hold any number of them."""

MAX_LINK_NOTES: Final = 20
"""Notes on the links of one document."""

_LINKS: Final = (*Relation, FH_PREV)
_FLAG: Final = {True: "true", False: "false"}
_KNOWN: Final = frozenset(_LINKS)
_NOTED_RELATIONS: Final = _KNOWN - {Relation.SELF, Relation.THIS}

_XML_TYPES: Final = frozenset({"application/xml", "text/xml"})
_FITTING_TYPES: Final = {
    Family.ATOM: _XML_TYPES | {"application/atom+xml"},
    Family.RSS: _XML_TYPES | {"application/rss+xml", "application/x-rss+xml", "text/rss", "text/rss+xml"},
    Family.RDF: _XML_TYPES | {"application/rdf+xml", "application/rss+xml", "text/rdf", "text/rdf+xml"},
    Family.JSON: frozenset({"application/feed+json", "application/json"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation:
    """What one document says about its feed and its neighbours."""

    url: str
    """The document's own, after redirects."""
    kind: Kind
    links: Mapping[str, str]
    """The usable http(s) target per relation, and what `recall` needs. Read it by the functions below."""
    is_archive: bool
    """Whether it is marked as an archive document (fh:archive; RFC 5005, section 4)."""
    older_relation: str
    """The relation that leads to the older documents of a chain; empty when none does."""
    is_tentative: bool = False
    """Whether that is a chain only if the document it leads to is not newer (R4)."""
    notes: tuple[Note, ...] = ()

    @property
    def current_url(self) -> str | None:
        """The subscription document (RFC 5005, section 4)."""
        return self.links.get(Relation.CURRENT)

    @property
    def newer_url(self) -> str | None:
        """The next newer archive document (RFC 5005, section 4)."""
        return self.links.get(Relation.NEXT_ARCHIVE)


@dataclass(frozen=True, slots=True)
class Serve:
    """The document is the subscription document."""


@dataclass(frozen=True, slots=True)
class Follow:
    """The subscription document is the one that `current` names; dereference it once."""

    url: str


@dataclass(frozen=True, slots=True)
class Forward:
    """An archive document that names no subscription document: the result can never be complete.

    Go on with `url`, the next newer archive document, and ask again there; where it is None, this
    document serves.
    """

    url: str | None


def classify(document: FeedDocument, http_links: Sequence[str] = ()) -> Navigation:
    """Return what a document says about its feed (rules R0 to R7, R11, R12).

    Args:
        document: Any document of a feed; `kind` is meant for the subscription document alone (R0).
        http_links: Raw values of its HTTP Link header fields (RFC 8288).
    """
    links, notes = _usable_links(document, header_links(http_links, document.url))
    flag = incremental_flag(document.head.history)
    if flag is not None:
        links[FH_INCREMENTAL] = _FLAG[flag]
    names = {element.name for element in document.head.history}
    is_archive, is_complete = "archive" in names, "complete" in names
    is_whole = not any(note.partial for note in document.notes)
    finding = _recognised(
        tuple(links), flag, is_archive=is_archive, is_complete=is_complete, is_whole=is_whole
    )
    return Navigation(
        url=document.url,
        kind=finding.kind,
        links=links,
        is_archive=is_archive,
        older_relation=finding.relation,
        is_tentative=finding.is_tentative,
        notes=notes,
    )


def recall(links: Mapping[str, str], *, is_archive: bool) -> Finding:
    """Return what a stored document said about its feed, except that it is complete (R1, R5).

    Args:
        links: As in `Navigation.links`, stored.
        is_archive: As in `Navigation.is_archive`, stored.
    """
    flag = says_incremental(links) if FH_INCREMENTAL in links else None
    return _recognised(tuple(links), flag, is_archive=is_archive, is_complete=False, is_whole=False)


@lru_cache(maxsize=256)  # there are few, and each document and each refresh has one of them
def _recognised(
    relations: tuple[str, ...], flag: bool | None, *, is_archive: bool, is_complete: bool, is_whole: bool
) -> Finding:
    """Where the links lead makes no difference to what they say."""
    links = dict.fromkeys(relations, "")
    if flag is not None:
        links[FH_INCREMENTAL] = _FLAG[flag]
    evidence = Evidence(links=links, is_archive=is_archive, is_complete=is_complete, is_whole=is_whole)
    return recognise(evidence)


def says_incremental(links: Mapping[str, str]) -> bool:
    """Return whether a flag says that earlier entries are part of the feed (-00, section 3; rule R15)."""
    return links.get(FH_INCREMENTAL) == "true"


def older_target(links: Mapping[str, str], relation: str) -> str | None:
    """Return where the relation that is being followed leads from a document; None at the chain's end.

    Args:
        links: As in `Navigation.links`, fresh or stored.
        relation: The chain's, as in `Navigation.older_relation` of its subscription document (R0).
    """
    return links.get(relation)


def dead_link(links: Mapping[str, str], relation: str, url: str) -> Note | None:
    """Return a note when a document's only link to the older ones cannot be followed (rule R2).

    Args:
        links: As in `Navigation.links`, fresh or stored.
        relation: The chain's.
        url: The document's.
    """
    href = links.get(f"{DEAD}{relation}")
    return None if href is None else DeadChainLink(url, href)


def subscription_hint(asked_url: str, final_url: str, navigation: Navigation) -> Serve | Follow | Forward:
    """Return how to get from a document to its feed's subscription document (rule R3; -05, section 6.1).

        asked --Follow--> the target of `current`: it serves, whatever it says itself
              --Forward-> the next newer archive document: ask again there; the result is never complete
              --Serve

    Args:
        asked_url: What was asked for.
        final_url: After redirects.
        navigation: The document's.
    """
    current = navigation.current_url
    if current is not None:
        is_itself = same_document(current, asked_url) or same_document(current, final_url)
        return Serve() if is_itself else Follow(current)
    return Forward(navigation.newer_url) if navigation.is_archive else Serve()


def _usable_links(
    document: FeedDocument, from_header: Sequence[Link]
) -> tuple[dict[str, str], tuple[Note, ...]]:
    """Choose one target per relation; the document's own links before those of the header (R12)."""
    own, beside = _by_relation(_head_links(document)), _by_relation(from_header)
    links: dict[str, str] = {}
    notes: list[Note] = []
    for relation in _LINKS:
        mine, others = own.get(relation, []), beside.get(relation, [])
        if not (mine or others):  # as of nearly all
            continue
        chosen = _chosen(mine, document.family) or _chosen(others, document.family)
        if chosen is not None:
            links[relation] = chosen.target.partition("#")[0]
        elif (dead := next((link for link in mine + others if link.href.strip()), None)) is not None:
            links[f"{DEAD}{relation}"] = safe_url(dead.href, keeps_query=True)
        if relation in _NOTED_RELATIONS:
            notes += _link_notes(mine or others, chosen, document.url)
    return links, tuple(notes[:MAX_LINK_NOTES])


def _head_links(document: FeedDocument) -> list[Link]:
    """Return the links of a head; the content of fh:prev is one too, relative to the base (-03, -04)."""
    links = [link for link in document.head.links if link.relation != FH_PREV]
    for element in document.head.history:
        if element.name == "prev":
            try:
                target = resolve(document.head.scope.base, element.text) if element.text else ""
            except ValueError:
                target = ""
            links.append(Link(FH_PREV, target, "", element.text))
    return links


def _by_relation(links: Sequence[Link]) -> dict[str, list[Link]]:
    grouped: dict[str, list[Link]] = {}
    for link in links:
        if link.relation in _KNOWN:
            group = grouped.setdefault(link.relation, [])
            if len(group) < MAX_LINKS_PER_RELATION:
                group.append(link)
    return grouped


def _chosen(links: Sequence[Link], family: Family) -> Link | None:
    """R12: the first http(s) link whose type fits; where none fits, the first http(s) one."""
    usable = [link for link in links if is_fetchable(link.target)]
    fitting = (link for link in usable if not link.media_type or link.media_type in _FITTING_TYPES[family])
    return next(fitting, usable[0] if usable else None)


def _link_notes(links: Sequence[Link], chosen: Link | None, url: str) -> list[Note]:
    notes: list[Note] = []
    for link in links:
        if not is_fetchable(link.target):
            notes.append(BadLink(url, link.relation, safe_url(link.href, keeps_query=True)))
        elif chosen is not None and not same_document(link.target, chosen.target):
            notes.append(ExtraLink(url, link.relation, safe_url(link.href, keeps_query=True)))
    return notes
